/** Asking for the API key of a service. */

import { html, useState } from "./html.js";
import { apiKey } from "./api.js";

/**
 * @param {Object} properties
 * @param {?string} properties.refused why the key that was there is not taken
 * @param {function(): void} properties.onKey a key was entered
 */
export function KeyForm({ refused, onKey }) {
  const [value, setValue] = useState("");
  const submit = (event) => {
    event.preventDefault();
    if (value.trim() === "") return;
    apiKey.set(value.trim());
    onKey();
  };
  return html`<form class="state key-form" onSubmit=${submit}>
    <strong>This service wants an API key</strong>
    <p>A key with the role “read” is enough to look; approving a change takes one with the role “write”. It is kept in this tab only, until you close it. ${" "}<code>airflow-pipelines keys create NAME</code> makes one.</p>
    ${refused && html`<p class="message" role="alert">${refused}</p>`}
    <label>API key <input type="password" name="key" autocomplete="off" spellcheck="false" autofocus value=${value} onInput=${(event) => setValue(event.target.value)} /></label>
    <button type="submit" class="primary" disabled=${value.trim() === ""}>Use this key</button>
  </form>`;
}
