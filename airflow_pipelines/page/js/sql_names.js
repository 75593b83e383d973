/** What a statement of SQL reads, by the names in its FROM clauses, folded as the program folds them. Only lines of a graph depend on it. */

const TOKENS = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"((?:[^"]|"")*)"|`((?:[^`]|``)*)`|([\p{L}_][\p{L}\p{N}_$]*)|([(),])/gu;
const BEGIN = new Set(["from", "join"]);
const END = new Set(["select", "where", "group", "having", "order", "limit", "union", "intersect", "except", "window", "on", "using"]);
const BETWEEN = new Set(["lateral", "table", "only"]);

/**
 * @param {string} sql a statement
 * @returns {Set<string>} the names after FROM, JOIN and the commas between them; those of CTEs among them
 */
export function namesRead(sql) {
  const names = new Set();
  const outer = [];
  // Whether a list of sources is open, and whether one of them comes next.
  let list = { isOpen: false, isNext: false };
  for (const [, quoted, ticked, plain, mark] of sql.matchAll(TOKENS)) {
    const word = plain?.toLowerCase();
    if (mark === "(") {
      outer.push({ ...list, isNext: false });
      list = { isOpen: false, isNext: list.isNext };
    } else if (mark === ")") list = outer.pop() ?? list;
    else if (mark === ",") list.isNext = list.isOpen;
    else if (BEGIN.has(word)) list = { isOpen: true, isNext: true };
    else if (END.has(word)) list = { isOpen: false, isNext: false };
    else if (list.isNext && !BETWEEN.has(word)) {
      const name = quoted?.replaceAll('""', '"') ?? ticked?.replaceAll("``", "`") ?? word;
      if (name !== undefined) {
        names.add(name);
        list.isNext = false;
      }
    }
  }
  return names;
}
