/** The pipeline's log, followed. */

import { classes, html, memo, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./html.js";
import { clock, moment } from "./format.js";
import { Empty, Loading, Problem } from "./states.js";

const EVERY_MS = 2000;
const FIRST_LINES = 500;
const MORE_LINES = 2000;
const KEPT_LINES = 3000;
const LINE = /^(\S+Z?) (DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL) (.*)$/s;
const SERIOUS = { WARN: "warn", WARNING: "warn", ERROR: "bad", CRITICAL: "bad" };

/** @param {{service: import("./api.js").Pipelines, name: string}} properties */
export function Logs({ service, name }) {
  const { lines, error, isCut } = useLog(service, name);
  const [wanted, setWanted] = useState("");
  const [isSerious, setSerious] = useState(false);
  const [isFollowing, setFollowing] = useState(true);
  const place = useRef(null);
  const shown = useMemo(() => lines?.filter((line) => fits(line, wanted.toLowerCase(), isSerious)), [lines, wanted, isSerious]);
  useLayoutEffect(() => {
    if (isFollowing && place.current) place.current.scrollTop = place.current.scrollHeight;
  }, [shown, isFollowing]);
  // Who scrolls up reads; at the end again, new lines are followed again.
  const scrolled = ({ target }) => setFollowing(target.scrollHeight - target.scrollTop - target.clientHeight < 24);

  if (!lines) return error ? html`<${Problem} title="The log cannot be shown" error=${error} />` : html`<${Loading} what="the log" />`;
  return html`<div class="logs">
    <div class="toolbar">
      <input type="search" aria-label="Lines with" placeholder="Lines with …" value=${wanted} onInput=${(event) => setWanted(event.target.value)} />
      <label><input type="checkbox" checked=${isSerious} onChange=${(event) => setSerious(event.target.checked)} /> warnings and errors only</label>
      <label><input type="checkbox" checked=${isFollowing} onChange=${(event) => setFollowing(event.target.checked)} /> follow</label>
      ${error && html`<span class="tone-bad" role="alert">${error.message}</span>`}
    </div>
    ${shown.length === 0
      ? html`<${Empty} title="No lines">${lines.length ? "None of the lines that are here is like that." : "The pipeline has not said anything yet."}<//>`
      : html`<div class="log-lines" ref=${place} tabindex="0" role="log" aria-label="Log" aria-live="off" onScroll=${scrolled}>
          ${isCut && html`<p class="muted">Older lines are left out.</p>`}
          ${shown.map((line) => html`<${Line} key=${line.number} text=${line.text} />`)}
        </div>`}
  </div>`;
}

function fits({ text }, wanted, isSerious) {
  return (!isSerious || LINE.exec(text)?.[2] in SERIOUS) && (wanted === "" || text.toLowerCase().includes(wanted));
}

const Line = memo(function Line({ text }) {
  const parts = LINE.exec(text);
  if (!parts) return html`<div class="log-line">${text}</div>`;
  const [, time, level, rest] = parts;
  return html`<div class=${classes("log-line", SERIOUS[level] && `tone-${SERIOUS[level]}`)}><time class="muted" title=${time}>${clock(moment(time))}</time> <b>${level}</b> ${rest}</div>`;
});

/** The newest lines, and those that come. */
function useLog(service, name) {
  const [found, setFound] = useState({ lines: null, error: null, isCut: false });
  useEffect(() => {
    const left = new AbortController();
    let after = null;
    let number = 0;
    let timer = null;
    const ask = async () => {
      try {
        const answer = document.hidden && after !== null ? null : await service.logLines(name, after, after === null ? FIRST_LINES : MORE_LINES, left.signal);
        if (answer) take(answer);
      } catch (error) {
        if (left.signal.aborted) return;
        setFound((before) => ({ ...before, error }));
      }
      if (!left.signal.aborted) timer = setTimeout(ask, EVERY_MS);
    };
    const take = (answer) => {
      const isFirst = after === null;
      // A log that is shorter than what was read of it is another one.
      const isNew = !isFirst && answer.next < after;
      after = isNew ? null : answer.next;
      const added = answer.lines.map((text) => ({ text, number: (number += 1) }));
      setFound((before) => {
        if (!isFirst && !isNew && added.length === 0) return before.error ? { ...before, error: null } : before;
        const all = [...(isNew ? [] : (before.lines ?? [])), ...added];
        return { lines: all.slice(-KEPT_LINES), error: null, isCut: before.isCut || answer.cut || all.length > KEPT_LINES || (isFirst && answer.from > 0) };
      });
    };
    ask();
    return () => {
      left.abort();
      clearTimeout(timer);
    };
  }, [service, name]);
  return found;
}
