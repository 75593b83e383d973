/** What is shown where there is nothing to show yet, any more, or at all. */

import { html } from "./html.js";
import { age, clock } from "./format.js";
import { Icon } from "./icons.js";

/** Something is on its way. */
export const Loading = ({ what }) =>
  html`<div class="state loading" role="status"><span class="spinner" aria-hidden="true"></span>Loading ${what} …</div>`;

/** There is nothing. */
export const Empty = ({ title, children }) => html`<div class="state empty"><strong>${title}</strong><p>${children}</p></div>`;

/** Something failed; with a button when it may work later. */
export function Problem({ title, error, onRetry }) {
  return html`<div class="state problem" role="alert">
    <${Icon} name="bad" /><div><strong>${title}</strong><p class="message">${error.message ?? String(error)}</p>
    ${onRetry && html`<button type="button" onClick=${onRetry}>Try again</button>`}</div>
  </div>`;
}

/** What is shown is not new: since when, and why. */
export function Stale({ error, at, now, onRetry }) {
  return html`<div class="banner tone-bad" role="alert"><${Icon} name="bad" />
    <div><strong>No news for ${age(at, now)}.</strong> ${error.message}. What you see is from ${clock(at, now)}.</div>
    <button type="button" onClick=${onRetry}>Try now</button>
  </div>`;
}

/** An error of a pipeline, word for word. */
export function PipelineError({ title, message }) {
  return html`<section class="banner tone-bad" role="alert"><${Icon} name="bad" /><div><strong>${title}</strong><pre class="message">${message}</pre></div></section>`;
}
