/** The program as it was written, and what the compiler says of it. */

import { html } from "./html.js";
import { Empty } from "./states.js";

export function Program({ descriptor }) {
  const files = Object.entries(descriptor.stream_files ?? {});
  if (!descriptor.program_code && files.length === 0) return html`<${Empty} title="No program">There is nothing in it yet.<//>`;
  return html`<div class="program">
    ${descriptor.program_code && html`<${Listing} text=${descriptor.program_code} label="SQL" />`}
    ${files.map(([path, text]) => html`<h4><code>${path}</code></h4><${Listing} text=${text} label=${path} />`)}
  </div>`;
}

const Listing = ({ text, label }) =>
  html`<div class="listing" role="region" tabindex="0" aria-label=${label}>${text.split("\n").map((line, index) => html`<div><span class="line-number">${index + 1}</span><code>${line || " "}</code></div>`)}</div>`;

/** What the compiler says, with the places. */
export function compilerMessages({ program_error: error, program_status: status }) {
  if (!["SqlError", "RustError", "SystemError"].includes(status)) return [];
  const messages = (error?.sql_compilation?.messages ?? []).filter((message) => !message.warning);
  const texts = messages.map((message) => {
    const place = [message.file, message.start_line_number > 0 && `line ${message.start_line_number}, column ${message.start_column}`].filter(Boolean).join(", ");
    return [place && `${place}: ${message.message}`, !place && message.message, message.snippet].filter(Boolean).join("\n");
  });
  const others = [error?.rust_compilation?.stderr, error?.system_error].filter(Boolean);
  return [...texts, ...others];
}
