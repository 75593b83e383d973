/** The page: which part of it is shown. */

import { html, render, useCallback, useEffect, useErrorBoundary, useMemo, useState } from "./html.js";
import { apiKey, loadContext, loadReviews, loadTask, Pipelines } from "./api.js";
import { KeyForm } from "./key.js";
import { List } from "./list.js";
import { reviewsOf } from "./overtaken.js";
import { PipelinePage } from "./pipeline.js";
import { usePolled } from "./polling.js";
import { LIST, pipelineRoute, useRoute } from "./route.js";
import { Empty, Loading, Problem } from "./states.js";
import { THEMES, useTheme } from "./theme.js";

const REVIEWS_MS = 5000;
const NO_REVIEWS = [];

function App() {
  const [choice, setChoice, theme] = useTheme();
  const [failure, dismiss] = useErrorBoundary((fault) => console.error(fault.stack));
  const { data: context, error, reload } = usePolled(loadContext, 0, []);
  const [hasKey, setHasKey] = useState(() => apiKey.get() !== null);
  const shown = failure
    ? html`<main class="page"><${Problem} title="This page has a fault" error=${failure} onRetry=${dismiss} /></main>`
    : context
      ? html`<${Face} context=${context} theme=${theme} onKey=${setHasKey} />`
      : html`<main class="page">${error ? html`<${ContextProblem} error=${error} onRetry=${reload} />` : html`<${Loading} what="pipelines" />`}</main>`;
  // Airflow has a frame of its own around the page.
  const header = context?.face !== "airflow" && html`<header class="top">
      <a class="brand" href=${LIST}><svg viewBox="0 0 20 20" aria-hidden="true"><path d="M2 5h5l3 5h8M2 15h5l3-5" /><circle cx="2.5" cy="5" r="1.8" /><circle cx="2.5" cy="15" r="1.8" /><circle cx="17.5" cy="10" r="1.8" /></svg>Airflow Pipelines</a>
      ${context && html`<span class="version muted">${context.version}</span>`}
      <label class="theme">Theme <select value=${choice} onChange=${(event) => setChoice(event.target.value)}>${THEMES.map(
        (name) => html`<option value=${name}>${name}</option>`,
      )}</select></label>
      ${context?.needs_key && hasKey && html`<button type="button" class="quiet" onClick=${() => { apiKey.forget(); location.reload(); }}>Forget key</button>`}
    </header>`;
  return html`${header}${shown}`;
}

function ContextProblem({ error, onRetry }) {
  const title = { session: "You are not logged in to Airflow any more", forbidden: "You may not see this page" }[error.kind];
  return html`<${Problem} title=${title ?? "The service does not answer"} error=${error} onRetry=${onRetry} />`;
}

function Face({ context, theme, onKey }) {
  const isService = context.face === "service";
  const [round, setRound] = useState(0);
  const [refused, setRefused] = useState(null);
  const services = useMemo(() => context.connections.map((each) => new Pipelines(each, context.needs_key)), [context, round]);
  const { data: reviews = NO_REVIEWS, reload: reloadReviews } = usePolled(isService ? null : loadReviews, REVIEWS_MS, [context.face]);
  const onKeyError = useCallback((error) => {
    const had = apiKey.get() !== null;
    apiKey.forget();
    // After the drawing that is under way.
    setTimeout(() => {
      setRefused(had ? error.message : null);
      setRound((before) => before + 1);
      onKey(false);
    });
  }, []);

  if (context.needs_key && !apiKey.get()) {
    return html`<main class="page"><${KeyForm} refused=${refused} onKey=${() => { setRefused(null); setRound(round + 1); onKey(true); }} /></main>`;
  }
  if (services.length === 0) {
    return html`<main class="page"><${Empty} title="No connection">Add a connection of the type “Airflow Pipelines” in Airflow’s Admin, Connections.<//></main>`;
  }
  const parts = { context, services, reviews, reloadReviews, onKeyError, theme };
  return location.search.includes("task_id=") ? html`<${OfTask} ...${parts} />` : html`<${Routed} key=${round} ...${parts} />`;
}

/** The tab of a task: the pipeline that the task is about. */
function OfTask(parts) {
  const { data, error, reload } = usePolled((signal) => loadTask(location.search, signal), 0, [location.search]);
  if (error) return html`<main class="page"><${Problem} title="What this task is about cannot be shown" error=${error} onRetry=${reload} /></main>`;
  if (!data) return html`<main class="page"><${Loading} what="the task’s pipeline" /></main>`;
  if (!data.pipeline) return html`<main class="page"><${Empty} title="This task is of no pipeline">Its operator is none of Airflow Pipelines, or it has not run yet.<//></main>`;
  return html`<${Shown} ...${parts} route=${{ pipeline: data.pipeline, connection: data.connection, view: data.review ? "change" : null }} />`;
}

function Routed(parts) {
  const route = useRoute();
  useEffect(() => { document.title = route.pipeline ? `${route.pipeline} – pipelines` : "Pipelines"; }, [route.pipeline]);
  return html`<${Shown} ...${parts} route=${route} />`;
}

function Shown({ route, context, services, reviews, reloadReviews, onKeyError, theme }) {
  if (!route.pipeline) return html`<${List} services=${services} reviews=${reviews} onKeyError=${onKeyError} />`;
  const service = route.connection ? services.find(({ connection }) => connection.id === route.connection) : services[0];
  if (!service) {
    return html`<main class="page"><${Empty} title="Unknown connection">There is no connection “${route.connection}”, or you may not use it. <a href=${LIST}>All pipelines</a><//></main>`;
  }
  return html`<${PipelinePage} key=${pipelineRoute(route.pipeline, service.connection.id)} name=${route.pipeline} view=${route.view} service=${service}
    face=${context.face} reviews=${reviewsOf(reviews, service.connection.id, route.pipeline)} onDecided=${reloadReviews} onKeyError=${onKeyError} theme=${theme} />`;
}

const place = document.getElementById("app");
place.replaceChildren();
render(html`<${App} />`, place);
