/**
 * The one error family. Every failure that tito reports carries a code from this closed list;
 * `docs/errors.md` is the same list for readers and a test keeps the two equal.
 */

/** code → HTTP status towards a harness, exit code of a command. 64 usage · 65 data · 69 unavailable · 70 bug · 73 cannot create · 74 I/O. */
export const ERROR_CODES = {
  usage: { status: 400, exit: 64 },
  bad_request: { status: 400, exit: 65 },
  unsupported: { status: 400, exit: 64 },
  context_overflow: { status: 400, exit: 65 },
  unauthorized: { status: 401, exit: 77 },
  forbidden_host: { status: 403, exit: 77 },
  not_found: { status: 404, exit: 66 },
  method_not_allowed: { status: 405, exit: 65 },
  request_timeout: { status: 408, exit: 69 },
  trajectory_sealed: { status: 410, exit: 65 },
  body_too_large: { status: 413, exit: 65 },
  unsupported_media_type: { status: 415, exit: 65 },
  capture_degraded: { status: 503, exit: 74 },
  upstream_rejected: { status: 502, exit: 69 },
  upstream_unavailable: { status: 502, exit: 69 },
  upstream_invalid: { status: 502, exit: 69 },
  engine_without_ids: { status: 502, exit: 69 },
  render_mismatch: { status: 502, exit: 69 },
  bundle_invalid: { status: 500, exit: 65 },
  format_invalid: { status: 500, exit: 65 },
  format_limit: { status: 500, exit: 65 },
  cannot_express: { status: 500, exit: 65 },
  damaged: { status: 500, exit: 2 },
  incomplete: { status: 500, exit: 1 },
  address_in_use: { status: 500, exit: 73 },
  cannot_write: { status: 500, exit: 73 },
  already_exists: { status: 500, exit: 73 },
  io: { status: 500, exit: 74 },
  command_not_found: { status: 500, exit: 127 },
  nothing_captured: { status: 500, exit: 125 },
  internal: { status: 500, exit: 70 },
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

const MARKER = Symbol.for("tito.error");

export interface TitoErrorOptions {
  /** The error that led here; kept for logs, never shown to a harness. */
  cause?: unknown;
  /** What the reader can do about it, one sentence. */
  hint?: string;
}

/**
 * The error that every part throws at an edge.
 * Contract: `message` says what happened and where (file, offset, sequence number, URL); `hint` says what to do.
 * Recognise it with {@link TitoError.is}, not with `instanceof`: bundles may hold two copies of this class.
 */
export class TitoError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly [MARKER] = true;

  constructor(code: ErrorCode, message: string, options: TitoErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "TitoError";
    this.code = code;
    this.hint = options.hint;
  }

  /** HTTP status towards a harness. */
  get status(): number {
    return ERROR_CODES[this.code].status;
  }

  /** Exit code of a command that ends with this error. */
  get exitCode(): number {
    return ERROR_CODES[this.code].exit;
  }

  static is(value: unknown): value is TitoError {
    return typeof value === "object" && value !== null && MARKER in value;
  }
}
