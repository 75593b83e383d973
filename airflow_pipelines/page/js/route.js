/** Which page an address means. It is all behind the #, so that no server sees it. */

import { useEffect, useState } from "./html.js";

/** @returns {{pipeline: ?string, connection: ?string, view: ?string}} */
export function parseRoute(hash) {
  const [path, search = ""] = hash.replace(/^#/, "").split("?", 2);
  const named = new URLSearchParams(search);
  const found = /^\/pipelines\/([^/]+)$/.exec(path);
  return { pipeline: found ? decoded(found[1]) : null, connection: named.get("connection"), view: named.get("view") };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of the list: without what the tab of a task has behind its "?". */
export const LIST = "./#/";

/** The address of a pipeline's page. */
export function pipelineRoute(name, connection, view = null) {
  const parts = new URLSearchParams();
  if (connection) parts.set("connection", connection);
  if (view) parts.set("view", view);
  const search = parts.toString();
  return `#/pipelines/${encodeURIComponent(name)}${search ? `?${search}` : ""}`;
}

/** The route of the address at the moment. */
export function useRoute() {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const changed = () => setRoute(parseRoute(location.hash));
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return route;
}
