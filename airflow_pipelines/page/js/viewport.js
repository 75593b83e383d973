/** Moving about in a drawing: drag to move, Ctrl and the wheel (or a pinch) to come closer, and the same by buttons and keys. */

const CLOSEST = 2.2;
const FARTHEST = 0.05;
/** The place on the right that the buttons take. */
const BUTTONS = 44;
const READABLE = 0.45;
const COMFORTABLE = 0.75;

export class Viewport {
  /**
   * @param {SVGSVGElement} svg the drawing
   * @param {SVGGElement} content what is moved in it
   */
  constructor(svg, content) {
    this.svg = svg;
    this.content = content;
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.isMoved = false;
    this.listeners = [
      [svg, "wheel", (event) => this.#wheel(event), { passive: false }],
      [svg, "pointerdown", (event) => this.#grab(event)],
    ];
    for (const [target, ...rest] of this.listeners) target.addEventListener(...rest);
  }

  close() {
    for (const [target, ...rest] of this.listeners) target.removeEventListener(...rest);
  }

  /** Show all of a drawing of some size; not larger than as it was drawn. */
  fit(size) {
    const box = this.svg.getBoundingClientRect();
    if (!box.width || !box.height) return;
    const width = box.width - BUTTONS;
    this.scale = clamp(Math.min(width / size.width, box.height / size.height, 1.15));
    this.x = (width - size.width * this.scale) / 2;
    this.y = (box.height - size.height * this.scale) / 2;
    this.isMoved = false;
    this.#apply();
  }

  /** Show all of a drawing where that can be read, else what is around the leftmost of its places. */
  start(drawing) {
    this.fit(drawing);
    if (this.scale >= READABLE) return;
    const box = this.svg.getBoundingClientRect();
    const places = [...drawing.places.values()];
    const left = Math.min(...places.map(({ x }) => x));
    const middle = (place) => Math.abs(place.y - drawing.height / 2);
    const first = places.filter(({ x }) => x === left).reduce((one, other) => (middle(other) < middle(one) ? other : one));
    this.scale = COMFORTABLE;
    this.x = 0;
    this.y = box.height / 2 - first.y * this.scale;
    this.#apply();
  }

  /** Come closer to a place of the window by a factor; the middle when no place is given. */
  zoom(factor, place = null) {
    const box = this.svg.getBoundingClientRect();
    const at = place ?? { x: box.width / 2, y: box.height / 2 };
    const scale = clamp(this.scale * factor);
    this.x = at.x - ((at.x - this.x) * scale) / this.scale;
    this.y = at.y - ((at.y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.isMoved = true;
    this.#apply();
  }

  /** Bring a place of the drawing into sight, if it is not. */
  reveal(place, margin = 110) {
    const box = this.svg.getBoundingClientRect();
    const x = place.x * this.scale + this.x;
    const y = place.y * this.scale + this.y;
    const inside = x > margin && x < box.width - margin && y > margin / 3 && y < box.height - margin / 3;
    if (inside) return;
    this.x += box.width / 2 - x;
    this.y += box.height / 2 - y;
    this.isMoved = true;
    this.#apply();
  }

  #wheel(event) {
    // Without Ctrl the wheel scrolls the page, as it does everywhere else.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = this.svg.getBoundingClientRect();
    this.zoom(Math.exp(-event.deltaY * 0.004), { x: event.clientX - box.left, y: event.clientY - box.top });
  }

  #grab(event) {
    if (event.button !== 0 || event.target.closest("[data-node]")) return;
    const start = { x: event.clientX - this.x, y: event.clientY - this.y };
    const move = (moved) => {
      this.x = moved.clientX - start.x;
      this.y = moved.clientY - start.y;
      this.isMoved = true;
      this.#apply();
    };
    const drop = () => {
      this.svg.removeEventListener("pointermove", move);
      this.svg.classList.remove("grabbed");
    };
    this.svg.setPointerCapture(event.pointerId);
    this.svg.classList.add("grabbed");
    this.svg.addEventListener("pointermove", move);
    this.svg.addEventListener("pointerup", drop, { once: true });
    this.svg.addEventListener("pointercancel", drop, { once: true });
  }

  #apply() {
    this.content.setAttribute("transform", `translate(${this.x.toFixed(1)} ${this.y.toFixed(1)}) scale(${this.scale.toFixed(4)})`);
  }
}

const clamp = (scale) => Math.min(CLOSEST, Math.max(FARTHEST, scale));
