#include "server/generation/rendered_request.h"

#include <utility>

namespace skein {

Json RenderedRequest(const ModelEntry& model, const GenerationFields& fields,
                     std::span<const TokenId> ids, std::string id) {
  const GenerateSpec& generate = fields.request.generate();
  const SamplingParams& sampling = generate.sampling;
  Json rendered;
  rendered["request_id"] = std::move(id);
  rendered["model"] = model.name();
  rendered["token_ids"] = ids;
  Json& params = rendered["sampling_params"];
  params["n"] = generate.num_samples;
  params["max_tokens"] = generate.max_tokens;
  params["min_tokens"] = generate.min_tokens;
  params["temperature"] = sampling.temperature;
  params["top_p"] = sampling.top_p;
  params["top_k"] = sampling.top_k;
  params["min_p"] = sampling.min_p;
  params["repetition_penalty"] = sampling.repetition_penalty;
  params["presence_penalty"] = sampling.presence_penalty;
  params["frequency_penalty"] = sampling.frequency_penalty;
  params["seed"] = sampling.seed;
  params["stop_token_ids"] = generate.stop_token_ids;
  rendered["priority"] = fields.request.priority;
  return rendered;
}

}  // namespace skein
