/**
 * Deciding about a change: in Airflow by answering its own request, so that Airflow's users and rights decide; in the service with the
 * programs that were shown as the precondition, so that what is approved is what was shown.
 */

import { html, useCallback, useState } from "./html.js";
import { clock } from "./format.js";
import { Icon } from "./icons.js";
import { OutsideLink } from "./outside.js";
import { isFor } from "./overtaken.js";

/**
 * @param {Object} properties
 * @param {Object} properties.change what is shown
 * @param {"service"|"airflow"} properties.face
 * @param {?Object} properties.review the request that waits in Airflow
 * @param {?string} properties.overtaken why the request can only be rejected any more
 * @param {?string} properties.obstacle why nobody can decide here
 * @param {function(string, Object): Promise} properties.decide what sends the decision
 * @param {function(string): void} properties.onDone it was sent; with what that means
 */
export function Review({ change, face, review, overtaken, obstacle, decide, onDone }) {
  const [asked, setAsked] = useState(null);
  const [isSending, setSending] = useState(false);
  const [isSent, setSent] = useState(false);
  const [refusal, setRefusal] = useState(null);
  // The question gets the focus, not the button: a key that is held down must not answer it.
  const focus = useCallback((node) => node?.focus(), []);
  const choices = face === "airflow" ? airflowChoices(review) : SERVICE_CHOICES;
  const reason = obstacle ?? (face === "airflow" ? airflowObstacle(review, change) : null);

  const send = async () => {
    setSending(true);
    try {
      await decide(asked.option, change);
      setSent(true);
      onDone(asked.done);
    } catch (error) {
      setRefusal(refusalText(error));
    } finally {
      setSending(false);
      setAsked(null);
    }
  };

  // The page says that it was sent, and this part goes when the pipeline has moved.
  if (isSent) return null;
  return html`<footer class="review">
    ${review && html`<p class="muted">${review.subject}. Task <code>${review.task_id}</code> of DAG <code>${review.dag_id}</code> waits since ${clock(review.created_at)}
      ${review.assigned_users?.length > 0 && html`, for ${review.assigned_users.map(({ name, id }) => name ?? id).join(", ")}`}. <${OutsideLink} path=${review.page}>Open it in Airflow<//></p>`}
    ${refusal && html`<p role="alert" class="tone-bad"><${Icon} name="bad" />${refusal}</p>`}
    ${overtaken && html`<p role="note"><${Icon} name="warn" />Overtaken: ${overtaken} An approval would do nothing; start a new DAG run for this change.</p>`}
    ${reason
      ? html`<p role="note"><${Icon} name="warn" />${reason}</p>`
      : asked
        ? html`<div class="confirm" role="group" aria-label="Confirm"><p tabindex="-1" ref=${focus}>${asked.question}</p>
            <button type="button" class=${asked.style} disabled=${isSending} onClick=${send}>${isSending ? "Sending …" : asked.confirm}</button>
            <button type="button" disabled=${isSending} onClick=${() => setAsked(null)}>Back</button></div>`
        : html`<div class="choices">${choices.map((choice) => html`<button type="button" class=${choice.style} disabled=${Boolean(overtaken) && choice.isApproval} onClick=${() => { setRefusal(null); setAsked(choice); }}>${choice.label}</button>`)}</div>`}
  </footer>`;
}

const SERVICE_CHOICES = [
  {
    option: "approve", label: "Approve …", style: "primary", confirm: "Approve this change", done: "Approved. The pipeline goes on with the new program.",
    question: "Exactly the change that is shown is approved; if another one waits by then, nothing is.",
  },
  {
    option: "stop", label: "Reject and stop …", style: "danger", confirm: "Reject, and stop the pipeline", done: "Rejected. The pipeline stops; its checkpoint is kept.",
    question: "The pipeline is stopped. Its checkpoint stays, and so does the changed program: change it back before you start again.",
  },
];

function airflowChoices(review) {
  return (review?.options ?? []).map((option) => {
    const isApproval = option === "Approve";
    return {
      option, isApproval, label: `${option} …`, style: isApproval ? "primary" : option === "Reject" ? "danger" : "", confirm: `${option}, in Airflow`,
      done: `Airflow has the answer “${option}”. The task goes on with it.`,
      question: isApproval
        ? "Airflow records that you approved. The task then lets exactly the change that its request shows take over; if the pipeline has moved, nothing happens."
        : `Airflow records your answer “${option}”, and the task does what its DAG says for it.`,
    };
  });
}

function airflowObstacle(review, change) {
  if (!review) return "No task of Airflow asks for this approval, or none that you may see. Approve it with ApprovePipelineOperator, or on the page of the service itself.";
  if (review.multiple || Object.keys(review.params ?? {}).length > 0) return "This request has fields to fill in: answer it in Airflow.";
  if (review.programs && change.programs && !isFor(review, change)) {
    return "The request in Airflow was written for another change than the one that waits now. Start a new DAG run for this one.";
  }
  return null;
}

function refusalText(error) {
  if (error.status === 412) return `Another change waits by now, and nothing was approved. ${error.message}`;
  if (error.status === 409) return `Somebody has answered already. ${error.message}`;
  if (error.kind === "forbidden") return `You may not decide about this. ${error.message}`;
  if (error.kind === "session") return "You are not logged in to Airflow any more: log in again and answer then.";
  return error.message;
}
