/** Light or dark: as the person chose, else as Airflow around the page is, else as the system is. */

import { useEffect, useLayoutEffect, useState } from "./html.js";

const KEPT = "airflow-pipelines-theme";
export const THEMES = ["auto", "light", "dark"];

/** A browser may keep a frame from storing anything. */
function kept() {
  try {
    return localStorage.getItem(KEPT) ?? "auto";
  } catch {
    return "auto";
  }
}

function keep(choice) {
  try {
    localStorage.setItem(KEPT, choice);
  } catch {
    // Then the choice ends with the page.
  }
}

/** Airflow's own document, when the page is in a frame of it. */
function around() {
  try {
    return window.parent !== window ? window.parent.document.documentElement : null;
  } catch {
    return null;
  }
}

function wanted(choice) {
  if (choice !== "auto") return choice;
  const frame = around();
  if (frame?.classList.contains("dark")) return "dark";
  if (frame?.classList.contains("light")) return "light";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** @returns {[string, function(string): void, string]} what was chosen, how to choose, and what it is */
export function useTheme() {
  const [choice, setChoice] = useState(() => kept());
  const [theme, setTheme] = useState(() => wanted(choice));
  useEffect(() => {
    const apply = () => setTheme(wanted(choice));
    const system = matchMedia("(prefers-color-scheme: dark)");
    const watched = new MutationObserver(apply);
    system.addEventListener("change", apply);
    if (around()) watched.observe(around(), { attributes: true, attributeFilter: ["class"] });
    keep(choice);
    apply();
    return () => {
      system.removeEventListener("change", apply);
      watched.disconnect();
    };
  }, [choice]);
  useLayoutEffect(() => { document.documentElement.dataset.theme = theme; }, [theme]);
  return [choice, setChoice, theme];
}
