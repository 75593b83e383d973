/**
 * Two texts side by side. diff2html finds the lines and words that differ and writes HTML; that is parsed into a document in which
 * nothing runs, and only its texts and marks are taken from there.
 */

const SCRIPTS = ["vendor/diff/diff.min.js", "vendor/diff2html/diff2html.min.js"];
const CONTEXT_LINES = 4;

let loaded = null;

/** Load what compares texts; it is large, and most pages never need it. */
export function loadDiffing() {
  loaded ??= Promise.all(SCRIPTS.map(loadScript)).catch((error) => {
    loaded = null;
    throw error;
  });
  return loaded;
}

function loadScript(path) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(path, document.baseURI);
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${path} cannot be loaded`));
    document.head.append(script);
  });
}

/**
 * @param {string} before the one text
 * @param {string} after the other
 * @returns {Array<{left: Object, right: Object}>} rows; a side has `number`, `kind` (same, del, ins, none) and `parts`
 */
export const compareTexts = (before, after) => {
  const ended = (text) => (text === "" || text.endsWith("\n") ? text : `${text}\n`);
  return rowsOf(globalThis.Diff.createTwoFilesPatch("a", "b", ended(before), ended(after), "", "", { context: CONTEXT_LINES }));
};

/** The same of a unified difference. */
export function rowsOf(patch) {
  const files = globalThis.Diff2Html.parse(patch);
  if (files.every((file) => file.blocks.length === 0)) return [];
  const written = globalThis.Diff2Html.html(files, { outputFormat: "side-by-side", drawFileList: false, matching: "lines", diffStyle: "word" });
  const parsed = new DOMParser().parseFromString(written, "text/html");
  const [left, right] = [...parsed.querySelectorAll(".d2h-file-side-diff")].map((side) => [...side.querySelectorAll("tr")].map(sideOf));
  const rows = (left ?? []).map((side, index) => ({ left: side, right: right[index] }));
  // What is left out is marked between lines; before the first one there is nothing to mark.
  return rows.filter((row, index) => index > 0 || row.left.kind !== "gap");
}

const KINDS = { "d2h-emptyplaceholder": "none", "d2h-del": "del", "d2h-ins": "ins", "d2h-info": "gap", "d2h-cntx": "same" };

function sideOf(row) {
  const cell = row.querySelector("td:last-child");
  const kind = Object.entries(KINDS).find(([name]) => cell.classList.contains(name))?.[1] ?? "same";
  const content = row.querySelector(".d2h-code-line-ctn");
  return {
    number: row.querySelector(".d2h-code-side-linenumber")?.textContent.trim() ?? "",
    kind,
    parts: kind === "gap" ? [] : [...(content?.childNodes ?? [])].map((node) => ({ text: node.textContent, isMarked: node.nodeType === Node.ELEMENT_NODE && ["INS", "DEL"].includes(node.nodeName) })),
  };
}
