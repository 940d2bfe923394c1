import { TitoError } from "@tito/format";
import type { z } from "zod";

/** An error as vLLM sends it: `{error: {message, type, param, code}}`, where code is the status. */
export class ApiError extends Error {
  readonly status: number;
  readonly type: string;
  readonly param: string | null;

  constructor(status: number, type: string, message: string, param: string | null = null) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.type = type;
    this.param = param;
  }

  body(): { error: { message: string; type: string; param: string | null; code: number } } {
    return { error: { message: this.message, type: this.type, param: this.param, code: this.status } };
  }
}

export function badRequest(message: string, param: string | null = null): ApiError {
  return new ApiError(400, "BadRequestError", message, param);
}

export function unknownModel(model: string): ApiError {
  return new ApiError(404, "NotFoundError", `The model \`${model}\` does not exist.`, "model");
}

/** The prompt alone fills the context. */
export function promptTooLong(maxModelLen: number, promptTokens: number): ApiError {
  return badRequest(
    `This model's maximum context length is ${maxModelLen} tokens. However, your request has ${promptTokens} input tokens. ` +
      `Please reduce the length of the input messages. (parameter=input_tokens, value=${promptTokens})`,
    "input_tokens",
  );
}

/** Prompt and requested output together do not fit. */
export function outputTooLong(maxModelLen: number, promptTokens: number, maxTokens: number): ApiError {
  return badRequest(
    `This model's maximum context length is ${maxModelLen} tokens. However, you requested ${maxTokens} output tokens and your prompt contains ` +
      `${promptTokens} input tokens, for a total of ${promptTokens + maxTokens} tokens. Please reduce the length of the input prompt or the ` +
      `number of requested output tokens. (parameter=input_tokens, value=${promptTokens})`,
    "input_tokens",
  );
}

/** The first thing a schema found wrong, as an error of the field. */
export function invalidBody(error: z.core.$ZodError): ApiError {
  const issue = error.issues[0];
  const path = issue?.path.map(String).join(".") ?? "";
  const param = path === "" ? null : path;
  return badRequest(path === "" ? (issue?.message ?? "invalid body") : `${path}: ${issue?.message}`, param);
}

/** Whatever was thrown, as an error to send. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (TitoError.is(error)) {
    const type =
      error.status === 404 ? "NotFoundError" : error.status < 500 ? "BadRequestError" : "InternalServerError";
    return new ApiError(error.status, type, error.message);
  }
  return new ApiError(500, "InternalServerError", error instanceof Error ? error.message : String(error));
}
