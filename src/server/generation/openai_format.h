#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/generation/answer_format.h"
#include "server/generation/generation_fields.h"

namespace skein {

// The common part of OpenAI's completions and chat completions: a list of choices; streams are
// chunks that end with [DONE].
class OpenAiFormat : public AnswerFormat {
 public:
  OpenAiFormat(std::string model_name, std::string id, const GenerationFields& fields);

  Json Answer(std::vector<ChoiceState>* choices, const Usage& usage) override;
  void AppendEvents(ChoiceState* state, const std::function<Usage()>& usage,
                    std::string* events) override;
  void AppendEnd(const Usage& usage, std::string* events) override;

 protected:
  // The value of the answer's member `object`.
  virtual const char* ObjectName(bool chunk) const = 0;
  // Makes the JSON of a complete choice.
  virtual Json Choice(ChoiceState* state) const = 0;
  // Appends the choices of the chunks for the content of `state`; none if there is no content.
  virtual void AppendChunks(ChoiceState* state, std::vector<Json>* chunks) const = 0;
  // Adds members to a whole answer, besides its choices.
  virtual void Decorate(const std::vector<ChoiceState>&, Json*) const {}

 private:
  Json Envelope(bool chunk) const;  // {id, object, created, model}
  void AppendChunk(Json choices, const Json& usage, std::string* events) const;

  const std::string model_name_;
  const std::string id_;
  const int64_t created_s_;
  const bool include_usage_;
  const bool continuous_usage_;
};

}  // namespace skein
