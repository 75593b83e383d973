/** Asking again and again, as long as somebody looks. */

import { useCallback, useEffect, useRef, useState } from "./html.js";

const SLOWEST_MS = 15_000;

/**
 * What a call answers, kept new. An error leaves what was known, and is asked about less and less often.
 * @param {?function(AbortSignal): Promise} load the call; null for nothing to ask
 * @param {number} everyMs how long to wait between an answer and the next call; 0 for once
 * @param {Array} keys what the call depends on: with other ones it begins anew
 * @returns {{data: *, error: ?Error, at: ?number, reload: function(): void}} `at` is when `data` came
 */
export function usePolled(load, everyMs, keys) {
  const [found, setFound] = useState({ keys: null, data: undefined, error: null, at: null });
  const wake = useRef(() => {});
  const key = JSON.stringify(keys);

  useEffect(() => {
    if (!load) return undefined;
    const left = new AbortController();
    let timer = null;
    let wait = everyMs;
    let isAsking = false;

    const next = () => {
      clearTimeout(timer);
      if (wait > 0 && !left.signal.aborted && !document.hidden) timer = setTimeout(ask, wait);
    };
    const ask = async () => {
      clearTimeout(timer);
      if (isAsking) return;
      isAsking = true;
      try {
        const data = await load(left.signal);
        wait = everyMs;
        if (!left.signal.aborted) setFound({ key, data, error: null, at: Date.now() });
      } catch (error) {
        if (left.signal.aborted) return;
        wait = Math.min(SLOWEST_MS, Math.max(wait, 1000) * 2);
        setFound((before) => ({ ...(before.key === key ? before : { data: undefined, at: null }), key, error }));
      } finally {
        isAsking = false;
        next();
      }
    };
    const seen = () => (document.hidden ? clearTimeout(timer) : ask());
    wake.current = ask;
    document.addEventListener("visibilitychange", seen);
    ask();
    return () => {
      left.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [key, everyMs, load === null]);

  const reload = useCallback(() => wake.current(), []);
  // What was found for other keys is of no use: it is another pipeline's.
  return found.key === key ? { ...found, reload } : { data: undefined, error: null, at: null, reload };
}

/** The time, drawn anew each second, so that ages go on between two answers. */
export function useNow(everyMs = 1000) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
