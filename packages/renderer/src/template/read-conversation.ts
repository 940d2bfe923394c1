/** An OpenAI conversation as vLLM's chat route hands it on to templates and encoders: texts in place of parts, and roles that the template knows. */
import type { Message } from "@tito/format";
import { contentText } from "./message-values.js";

/** How a family's prompts want their conversation read. */
export interface ReadingRules {
  /** What stands between the text parts of a message; templates that go through parts print them one behind the other. Between those of a tool's result always a line break. */
  part_separator: "" | "\n" | "\n\n";
  /** False: developer messages are system messages. */
  knows_developer: boolean;
}

/** Encoders in code know developers; a template does when it names the role. */
export function readingRules(
  family: Pick<ReadingRules, "part_separator"> & { writer: { kind: string } },
  template: string,
): ReadingRules {
  const knows_developer = family.writer.kind !== "template" || /(["'])developer\1/.test(template);
  return { part_separator: family.part_separator, knows_developer };
}

/** The conversation with text for content. The same array when there is nothing to do. */
export function readConversation(messages: readonly Message[], rules: ReadingRules): readonly Message[] {
  const converts = !rules.knows_developer && messages.some((message) => message.role === "developer");
  if (!converts && !messages.some((message) => Array.isArray(message.content))) return messages;
  const roles = converts ? oneSystemMessage(messages) : messages;
  return roles.map((message) => withText(message, message.role === "tool" ? "\n" : rules.part_separator));
}

function withText(message: Message, separator: string): Message {
  return Array.isArray(message.content) ? { ...message, content: contentText(message.content, separator) } : message;
}

/** Developer messages are system messages; several of these become one, first, because templates take one at most. */
function oneSystemMessage(messages: readonly Message[]): readonly Message[] {
  const isSystem = ({ role }: Message): boolean => role === "system" || role === "developer";
  const systems = messages.filter(isSystem);
  if (systems.length === 1 && isSystem(messages[0]!))
    return [{ ...messages[0]!, role: "system" }, ...messages.slice(1)];
  const texts = systems.map((message) => contentText(message.content, "\n") ?? "").filter((text) => text !== "");
  return [{ role: "system", content: texts.join("\n\n") }, ...messages.filter((message) => !isSystem(message))];
}
