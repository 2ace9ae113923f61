// What becomes of workerd's log lines in a local run.

// workerd says this when an object's alarm, found overdue after a restart, is not the one that its scheduler had noted.
// It then runs the alarm, which is what should happen.
const harmless = "NOSENTRY SQLite alarm overdue, running despite AlarmManager mismatch;";

/** The line to write for a log entry; undefined for the one that is known to be harmless. */
export function lineOf({ level, message }) {
  return message.includes(harmless) ? undefined : `${level}: ${message}\n`;
}
