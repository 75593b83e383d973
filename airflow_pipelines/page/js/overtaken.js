/**
 * Requests in Airflow that were overtaken: their tasks refuse an approval, because the pipeline is not what it was when they asked, or
 * because somebody has asked again. The same rules as those of the operators.
 */

/** The requests about a pipeline, the newest first. */
export const reviewsOf = (reviews, connection, pipeline) =>
  reviews.filter((each) => each.connection === connection && each.pipeline === pipeline).sort((one, other) => (other.asked_at ?? other.created_at) - (one.asked_at ?? one.created_at));

/** Whether a request was written for the change that waits. */
export const isFor = (review, change) => JSON.stringify(sides(review.programs)) === JSON.stringify(sides(change.programs));

/** Hashes and versions in a fixed order, to be compared. */
const sides = (programs) => ["saved", "new"].map((side) => [programs?.[side]?.hash ?? null, programs?.[side]?.version ?? null]);

/** Whether two versions differ. Services and tasks of earlier releases do not tell all of them. */
const isOther = (one, other) => Number.isInteger(one) && Number.isInteger(other) && one !== other;

/**
 * Why a request is overtaken, or null.
 * @param {Object} review the request
 * @param {Object} current the request about its pipeline that counts: the newest
 * @param {{status: string, version: number, program_version: number}} pipeline what it is now
 */
export function whyOvertaken(review, current, pipeline) {
  if (current !== review) {
    const { dag_id: dag, run_id: run } = current;
    return `A newer request has replaced this one: that of DAG ${dag}, run ${run}.`;
  }
  // A request of a pipeline that is asked while it awaits approval shows what the pipeline itself shows.
  if (!review.change) return pipeline.status === "AwaitingApproval" ? null : `The pipeline does not wait for approval any more: it is ${pipeline.status} now.`;
  const saved = review.programs?.saved?.version;
  if (isOther(review.version, pipeline.version)) {
    return `Somebody has changed the pipeline since: it is version ${pipeline.version} now, and was version ${review.version} when the change was planned.`;
  }
  if (isOther(saved, pipeline.program_version)) {
    return `The program has changed since: it is version ${pipeline.program_version} now, and the change was planned for version ${saved}.`;
  }
  if (["Stopped", "Stopping"].includes(pipeline.status)) {
    return `The pipeline is ${pipeline.status} now, and the change is one of a pipeline that runs.`;
  }
  return null;
}
