#include "server/api/token_embeddings.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "server/generation/answer_format.h"
#include "server/reads/late_interaction.h"
#include "server/reads/pooling_call.h"

namespace skein {
namespace {

constexpr size_t kTokenFloatsMax = size_t{8} << 20;  // in one answer: some 100 MB of text

// Reads prompt_name. Texts without it are documents, as in PyLate.
LateSide ReadSide(FieldReader* reader) {
  const std::string name = reader->String("prompt_name").value_or("document");
  if (name != "query" && name != "document") {
    reader->RefuseValue("prompt_name", "\"query\" or \"document\"", Json(name));
  }
  return name == "query" ? LateSide::kQuery : LateSide::kDocument;
}

void RefuseFormat(FieldReader* reader) {
  const std::string format = reader->String("encoding_format").value_or("float");
  if (format != "float") {
    reader->RefuseValue("encoding_format", "\"float\" with the task token_embed", Json(format));
  }
}

// Appends the vectors of a text: [[f, ...], ...].
void AppendVectors(std::span<const float> vectors, size_t width, std::string* out) {
  *out += '[';
  for (size_t i = 0; i < vectors.size(); i += width) {
    if (i > 0) *out += ',';
    AppendFloats(vectors.subspan(i, width), out);
  }
  *out += ']';
}

Json Head(const ModelEntry& model, uint64_t random) {
  Json head;
  head["id"] = MakeAnswerId("pool", random);
  head["object"] = "list";
  head["created"] = UnixSeconds();
  head["model"] = model.name();
  return head;
}

}  // namespace

Status StartTokenEmbeddings(const ServerContext& context, FieldReader* reader,
                            std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(PoolingCall call, BeginTokenEmbedding(context, reader));
  const ModelTraits& traits = call.model->traits;
  InputOptions options = ReadInputOptions(reader, *call.model);
  const LateSide side = ReadSide(reader);
  options.late = side;
  const auto prompt = traits.prompts.find(side == LateSide::kQuery ? "query" : "document");
  if (prompt != traits.prompts.end()) options.prompt = prompt->second;
  const bool normalizes =
      reader->Bool("normalize").value_or(true) && reader->Bool("use_activation").value_or(true);
  RefuseFormat(reader);
  SKEIN_RETURN_IF_ERROR(ReadCallTexts(options, "input", reader, &call));
  const auto width = static_cast<size_t>(traits.embedding_size);
  size_t num_tokens = 0;
  std::vector<std::vector<TokenId>> ids;
  std::vector<bool> are_texts;
  for (const ReadInput& input : call.inputs.inputs) {
    num_tokens += input.ids.size();
    ids.push_back(input.ids);
    are_texts.push_back(input.is_text);
  }
  if (num_tokens > kTokenFloatsMax / width) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("input has {} tokens together, must have at most {}", num_tokens,
                              kTokenFloatsMax / width),
                  "input");
  }
  Json head = Head(*call.model, context.random_seed());
  FinishPooling(
      context, std::move(call), std::move(responder),
      [=, head = std::move(head), ids = std::move(ids), &traits](const PooledResults& results) {
        std::string body = DumpJson(head);
        body.pop_back();
        body += R"(,"data":[)";
        for (size_t i = 0; i < results.vectors.size(); ++i) {
          // Arrays of ids keep the vectors of all their tokens.
          std::vector<float> vectors =
              are_texts[i]
                  ? InteractingVectors(*traits.late_interaction, side, ids[i], results.vectors[i])
                  : results.vectors[i];
          if (normalizes) NormalizeEach(vectors, width);
          body += fmt::format(R"({}{{"object":"pooling","index":{},"data":)", i > 0 ? "," : "", i);
          AppendVectors(vectors, width, &body);
          body += '}';
        }
        return body + R"(],"usage":)" + DumpJson(ReadUsageJson(results.usage)) + "}";
      });
  return Status::Ok();
}

}  // namespace skein
