/** What the page is drawn with: Preact and htm, which write text as text, never as HTML. */

import { Component, h } from "../vendor/htm/standalone.module.js";

export {
  h, html, render, useCallback, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useReducer, useRef, useState,
} from "../vendor/htm/standalone.module.js";

/**
 * A component that is drawn again only when one of its properties is another value.
 * @param {function(Object): Object} draw what it looks like
 */
export function memo(draw) {
  return class Memo extends Component {
    shouldComponentUpdate(next) {
      const keys = new Set([...Object.keys(next), ...Object.keys(this.props)]);
      return [...keys].some((key) => key !== "children" && next[key] !== this.props[key]);
    }

    render(properties) {
      return h(draw, properties);
    }
  };
}

/** Class names, without those that are false. */
export const classes = (...names) => names.filter(Boolean).join(" ");
