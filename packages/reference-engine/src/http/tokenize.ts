import { z } from "zod";
import type { Engine } from "../engine.js";
import { badRequest, unknownModel } from "../errors.js";
import { promptOfIds, promptOfText, renderChat } from "../render/prompt.js";
import { templateVariables } from "./chat-request.js";
import { parseWith, readJsonBody } from "./json-body.js";

const tokenizeSchema = z.object({
  model: z.string().nullish(),
  prompt: z.string().nullish(),
  messages: z.array(z.unknown()).nullish(),
  add_generation_prompt: z.boolean().nullish(),
  return_token_strs: z.boolean().nullish(),
  chat_template_kwargs: z.record(z.string(), z.unknown()).nullish(),
});

const detokenizeSchema = z.object({ model: z.string().nullish(), tokens: z.array(z.number().int().min(0)) });

/** `POST /tokenize`: the ids of a text, or of a chat as the chat endpoint would render it. */
export function tokenizeText(engine: Engine, bodyText: string): object {
  const body = readJsonBody(bodyText);
  const request = parseWith(tokenizeSchema, body);
  checkModel(engine, request.model);
  const { ids } =
    request.messages == null
      ? promptOfText(engine.vocabulary, request.prompt ?? missing())
      : renderChat(engine.vocabulary, engine.template, {
          rawBody: body.text,
          addGenerationPrompt: request.add_generation_prompt ?? true,
          variables: templateVariables(request.chat_template_kwargs, null),
          names: engine.directory,
        });
  return {
    count: ids.length,
    max_model_len: engine.maxModelLen,
    tokens: ids,
    token_strs: request.return_token_strs === true ? ids.map((id) => engine.vocabulary.tokenText(id)) : null,
  };
}

/** `POST /detokenize`: the text of ids, markers included. */
export function detokenizeIds(engine: Engine, bodyText: string): object {
  const request = parseWith(detokenizeSchema, readJsonBody(bodyText));
  checkModel(engine, request.model);
  if (request.tokens.length === 0) return { prompt: "" };
  const { ids } = promptOfIds(engine.vocabulary, request.tokens);
  return { prompt: engine.vocabulary.decode(ids, { skipSpecial: false }) };
}

function checkModel(engine: Engine, model: string | null | undefined): void {
  if (model != null && model !== engine.options.model) throw unknownModel(model);
}

function missing(): never {
  throw badRequest("either prompt or messages must be given");
}
