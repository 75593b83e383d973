/** The checkpoints of a pipeline, and their copies in the object store. */

import { html } from "./html.js";
import { age, bytes, clock, exact, uuidMoment, whole } from "./format.js";
import { usePolled } from "./polling.js";
import { Empty } from "./states.js";

const EVERY_MS = 5000;

/** @param {{descriptor: Object, isUp: boolean, sync: ?Object}} properties `sync`: the newest copy, if one is known */
export function Checkpoints({ service, name, descriptor, isUp, now }) {
  const asked = usePolled(isUp ? (signal) => service.checkpoints(name, signal) : null, EVERY_MS, [service.connection.api, name, isUp]);
  const copied = usePolled(isUp ? (signal) => service.syncStatus(name, signal) : null, EVERY_MS, [service.connection.api, name, isUp]);
  // A stopped pipeline has no host to ask, but its descriptor knows.
  const checkpoints = [...(asked.data ?? descriptor.storage_status_details?.checkpoints ?? [])].sort((one, other) => other.uuid.localeCompare(one.uuid));
  return html`
    <${Copies} status=${copied.data} now=${now} />
    ${checkpoints.length === 0
      ? html`<${Empty} title="No checkpoints">A kill would lose what the pipeline has taken in, as far as its inputs cannot send it again. CheckpointPipelineOperator takes one, and so does a stop.<//>`
      : html`<div class="scrolls"><table class="checkpoints"><thead><tr><th scope="col">Taken</th><th scope="col" class="right">Age</th><th scope="col" class="right">Size</th><th scope="col" class="right">Steps</th><th scope="col" class="right">Rows processed</th><th scope="col">Label</th><th scope="col">Id</th></tr></thead>
          <tbody>${checkpoints.map((each) => {
            const at = uuidMoment(each.uuid);
            return html`<tr><th scope="row" title=${exact(at)}>${clock(at, now)}</th><td class="right">${age(at, now)}</td><td class="right">${bytes(each.size)}</td><td class="right">${whole(each.steps)}</td><td class="right">${whole(each.processed_records)}</td><td>${each.identifier ?? ""}</td><td><code class="hash">${each.uuid}</code></td></tr>`;
          })}</tbody></table></div>`}`;
}

function Copies({ status, now }) {
  if (!status) return null;
  const { success, periodic, failure } = status;
  const newest = [success, periodic].filter(Boolean).map(String).sort().at(-1);
  const at = uuidMoment(newest);
  return html`<p class="copies">Copies in the object store: ${newest ? html`newest ${at ? html`of the checkpoint of <time title=${exact(at)}>${clock(at, now)}</time>, ${age(at, now)} ago` : newest}` : "none by this run"}.
    ${failure && html`<span class="tone-bad"> The last one that failed: ${failure.error ?? JSON.stringify(failure)}</span>`}</p>`;
}
