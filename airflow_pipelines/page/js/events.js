/** How the states of a pipeline went, newest first. */

import { html } from "./html.js";
import { age, clock, exact, moment } from "./format.js";
import { StatePill } from "./icons.js";
import { usePolled } from "./polling.js";
import { Empty, Loading, Problem } from "./states.js";
import { stateOf } from "./status.js";

const EVERY_MS = 5000;
const SHOWN = 100;

export function Events({ service, name, now }) {
  const { data, error, reload } = usePolled((signal) => service.events(name, signal), EVERY_MS, [service.connection.api, name]);
  if (!data) return error ? html`<${Problem} title="The events cannot be shown" error=${error} onRetry=${reload} />` : html`<${Loading} what="events" />`;
  if (data.length === 0) return html`<${Empty} title="No events">The states of the pipeline have not changed yet.<//>`;
  return html`<ol class="events">${data.slice(0, SHOWN).map((event, index) => html`<${Event} key=${event.event_id} event=${event} before=${data[index + 1]} now=${now} />`)}</ol>`;
}

function Event({ event, before, now }) {
  const at = moment(event.recorded_at);
  return html`<li><time title=${exact(at)}>${clock(at, now)}</time><span class="muted">${age(at, now)} ago</span>
    <div><${StatePill} state=${stateOf({ status: event.deployment_runtime_status ?? event.deployment_resources_status, programStatus: event.program_status, error: event.deployment_error })} />
      <span class="muted">${differences(event, before)}</span>
      ${event.deployment_error && event.deployment_error.message !== before?.deployment_error?.message && html`<pre class="message tone-bad">${event.deployment_error.message}</pre>`}</div></li>`;
}

const PARTS = { program_status: "program", storage_status: "storage", deployment_resources_desired_status: "wanted", deployment_runtime_desired_status: "wanted" };

/** What is another than it was, besides the state itself. */
function differences(event, before) {
  if (!before) return "";
  const found = Object.entries(PARTS).filter(([part]) => event[part] !== before[part] && event[part] !== null).map(([part, word]) => `${word}: ${event[part]}`);
  return [...new Set(found)].join(", ");
}
