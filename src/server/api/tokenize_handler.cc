#include <memory>
#include <utility>

#include "server/json/api_error.h"
#include "server/json/request_body.h"
#include "server/routes.h"

namespace skein {
namespace {

constexpr size_t kInputsMax = 1024;  // texts of TEI's field `inputs`

// Answers TEI's `inputs`, a text or an array of texts, with the tokens of each text: [[{id, text,
// special, start, stop}]]. Positions count code points of the text.
Result<Json> TokenizeInputs(const ModelEntry& model, FieldReader* reader) {
  EncodeOptions options;
  options.add_special_tokens = reader->Bool("add_special_tokens").value_or(true);
  options.with_offsets = true;
  const std::vector<std::string> texts = reader->Strings("inputs", kInputsMax);
  if (!reader->status().ok()) return reader->status();
  Json answer = Json::array();
  for (const std::string& text : texts) {
    Encoding encoding;
    const Status encoded = model.tokenizer->EncodeFull({text, {}}, options, &encoding);
    if (!encoded.ok()) return Status(encoded.code(), "inputs: " + encoded.message(), "inputs");
    Json tokens = Json::array();
    for (size_t i = 0; i < encoding.ids.size(); ++i) {
      const bool special = encoding.is_special[i] != 0;
      Json token;
      token["id"] = encoding.ids[i];
      token["text"] = model.tokenizer->IdToToken(encoding.ids[i]);
      token["special"] = special;
      token["start"] = special ? Json(nullptr) : Json(encoding.offsets[i].begin);
      token["stop"] = special ? Json(nullptr) : Json(encoding.offsets[i].end);
      tokens.push_back(std::move(token));
    }
    answer.push_back(std::move(tokens));
  }
  return answer;
}

// Answers `prompt` or `messages` with {count, max_model_len, tokens, token_strs?}.
Result<Json> Tokenize(const ServerContext& context, const HttpRequest& request) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindModel(*context.models, &reader));
  if (reader.Has("inputs")) return TokenizeInputs(*model, &reader);
  const bool is_chat = reader.Has("messages");
  const bool add_special_tokens = reader.Bool("add_special_tokens").value_or(!is_chat);
  const bool return_strings = reader.Bool("return_token_strs").value_or(false);
  std::string text;
  if (is_chat) {
    SKEIN_ASSIGN_OR_RETURN(const Json chat, ReadChat(*model, &reader));
    SKEIN_ASSIGN_OR_RETURN(text, RenderChat(*model, chat));
  } else {
    const auto prompt = reader.String("prompt");
    if (!prompt) reader.Refuse("prompt", "prompt (a string) or messages must be given");
    text = prompt.value_or("");
  }
  if (!reader.status().ok()) return reader.status();
  std::vector<TokenId> ids;
  const Status encoded = is_chat ? EncodeChat(*model, text, add_special_tokens, 0, &ids)
                                 : model->tokenizer->Encode(text, add_special_tokens, &ids);
  if (!encoded.ok()) {
    return Status(encoded.code(), encoded.message(), is_chat ? "messages" : "prompt");
  }
  Json answer;
  answer["count"] = ids.size();
  answer["max_model_len"] = model->max_model_len;
  answer["tokens"] = ids;
  if (return_strings) {
    answer["token_strs"] = Json::array();
    for (TokenId id : ids) answer["token_strs"].push_back(model->tokenizer->IdToToken(id));
  }
  return answer;
}

// Answers `tokens` with {prompt}.
Result<Json> Detokenize(const ServerContext& context, const HttpRequest& request) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindModel(*context.models, &reader));
  if (!reader.Has("tokens")) reader.Refuse("tokens", "tokens must be given");
  const auto ids = reader.TokenIds("tokens", model->engine->Limits().vocab_size);
  if (!reader.status().ok()) return reader.status();
  Json answer;
  answer["prompt"] = model->tokenizer->Decode(ids, /*skip_special_tokens=*/false);
  return answer;
}

Handler Answering(Result<Json> (*answer)(const ServerContext&, const HttpRequest&)) {
  return [answer](const ServerContext& context, std::shared_ptr<const HttpRequest> request,
                  std::shared_ptr<Responder> responder) {
    Result<Json> json = answer(context, *request);
    if (!json.ok()) return responder->Send(ErrorResponse(json.status()));
    HttpResponse response;
    response.body = DumpJson(*json);
    responder->Send(std::move(response));
  };
}

}  // namespace

void AddTokenizeRoutes(Router* router) {
  router->AddWork("POST", "/tokenize", Answering(&Tokenize));
  router->AddWork("POST", "/detokenize", Answering(&Detokenize));
}

}  // namespace skein
