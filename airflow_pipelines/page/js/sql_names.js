/** The names in a statement of SQL, folded as the program folds them. Enough to draw what a statement reads; nothing depends on it. */

const TOKENS = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"((?:[^"]|"")*)"|`((?:[^`]|``)*)`|([\p{L}_][\p{L}\p{N}_$]*)/gu;

/** @param {string} sql a statement */
export function namesIn(sql) {
  const names = new Set();
  for (const [, quoted, ticked, plain] of sql.matchAll(TOKENS)) {
    if (quoted !== undefined) names.add(quoted.replaceAll('""', '"'));
    else if (ticked !== undefined) names.add(ticked.replaceAll("``", "`"));
    else if (plain !== undefined) names.add(plain.toLowerCase());
  }
  return names;
}
