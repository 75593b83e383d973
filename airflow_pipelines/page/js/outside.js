/** Links out of the frame in which Airflow shows the page. */

import { html } from "./html.js";

/** The frame may not lead the window elsewhere, but Airflow's own document around it may. */
function leave(event) {
  if (window.parent === window || event.ctrlKey || event.metaKey || event.shiftKey) return;
  try {
    const link = window.parent.document.createElement("a");
    link.href = event.currentTarget.href;
    link.click();
    event.preventDefault();
  } catch {
    // Another document is around it: the browser decides where the link may lead.
  }
}

/** @param {{path: string}} properties a path on the page's origin */
export const OutsideLink = ({ path, children }) =>
  html`<a href=${new URL(path, location.origin).href} target="_top" onClick=${leave}>${children}</a>`;
