/** Numbers and times for people. What is not known is an en dash. */

export const UNKNOWN = "–";

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function scaled(value, base, units) {
  let size = Math.abs(value);
  let unit = 0;
  while (size >= base * 0.9995 && unit < units.length - 1) {
    size /= base;
    unit += 1;
  }
  const number = unit === 0 && Number.isInteger(size) ? WHOLE.format(size) : SHORT.format(size);
  return `${value < 0 ? "−" : ""}${number}${units[unit]}`;
}

/** 1234567 as "1,234,567". */
export const whole = (value) => (isNumber(value) ? WHOLE.format(value) : UNKNOWN);

/** 1234567 as "1.23 M". */
export const brief = (value) => (isNumber(value) ? scaled(value, 1000, ["", " k", " M", " G", " T"]) : UNKNOWN);

/** A number of rows in a second. */
export const rate = (value) => (isNumber(value) ? `${scaled(value, 1000, ["", " k", " M", " G"])}/s` : UNKNOWN);

/** A number of bytes. */
export const bytes = (value) => (isNumber(value) ? scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]) : UNKNOWN);

/** A part of one, in percent. */
export function share(value) {
  if (!isNumber(value)) return UNKNOWN;
  const percent = value * 100;
  return percent > 0 && percent < 1 ? "<1 %" : `${Math.round(percent)} %`;
}

/** A number of milliseconds: "0.4 ms", "12 ms", "3.2 s". */
export const millis = (value) => {
  if (!isNumber(value)) return UNKNOWN;
  if (Math.abs(value) < 0.01) return "0 ms";
  return value < 1000 ? `${SHORT.format(value)} ms` : duration(value / 1000);
};

/** A number of seconds with at most two units: "0.6 s", "42 s", "3 min", "2 h 5 min", "4 d". */
export function duration(value) {
  if (!isNumber(value)) return UNKNOWN;
  if (value < 10) return `${SHORT.format(Math.round(value * 10) / 10)} s`;
  const seconds = Math.round(value);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return minutes < 10 && seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return days < 7 && hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}

/** An estimate: between two durations, where both are known and differ. */
export function estimate({ seconds, seconds_at_most: most }) {
  const [low, high] = [duration(seconds), duration(most)];
  return most === undefined || low === high ? low : `${low} to ${high}`;
}

/** How long ago a moment is: "now" or a duration. Null when it is not known. */
export function age(moment, now) {
  if (!isNumber(moment)) return UNKNOWN;
  const seconds = (now - moment) / 1000;
  return seconds < 1 ? "now" : duration(Math.max(0, Math.round(seconds)));
}

/** The same with one unit: "53 min". */
export function briefAge(moment, now) {
  if (!isNumber(moment)) return UNKNOWN;
  const seconds = Math.max(0, Math.floor((now - moment) / 1000));
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"]].find(([limit]) => seconds >= limit) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** An RFC 3339 time as milliseconds since the epoch; null for none. */
export function moment(text) {
  if (!text) return null;
  const parsed = Date.parse(text);
  return Number.isNaN(parsed) ? null : parsed;
}

/** The time that is in a UUID of version 7, in milliseconds since the epoch; null for another one. */
export function uuidMoment(uuid) {
  const digits = String(uuid ?? "").replaceAll("-", "");
  return /^[0-9a-f]{12}7[0-9a-f]{19}$/i.test(digits) ? parseInt(digits.slice(0, 12), 16) : null;
}

const TIME = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("en-CA", { dateStyle: "short" });

/** The local time of day, with the date when it is another day. */
export function clock(value, now = Date.now()) {
  if (!isNumber(value)) return UNKNOWN;
  const day = DAY.format(value);
  return day === DAY.format(now) ? TIME.format(value) : `${day} ${TIME.format(value)}`;
}

/** A moment in full, for tooltips. */
export const exact = (value) => (isNumber(value) ? new Date(value).toISOString().replace("T", " ").replace("Z", " UTC") : "");

/** "1 view", "2 views". */
export const counted = (number, noun, plural = `${noun}s`) => `${whole(number)} ${number === 1 ? noun : plural}`;
