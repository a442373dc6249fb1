// Answers questions about a text:
//
//   decide MODEL TEXT QUESTION...
//
// A QUESTION is answered by yes or no, or is a choice: "Which tone?=friendly|neutral|angry".

#include <skein/model.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace {

skein::Question ParseQuestion(const std::string& text) {
  skein::Question question;
  const size_t equals = text.find('=');
  question.instructions = text.substr(0, equals);
  if (equals == std::string::npos) return question;
  question.type = skein::Question::Type::kChoice;
  for (size_t begin = equals + 1; begin <= text.size();) {
    const size_t end = std::min(text.find('|', begin), text.size());
    question.options.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return question;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: decide MODEL TEXT QUESTION...\n");
    return 2;
  }
  std::unique_ptr<skein::ServedModel> model;
  skein::Status status = skein::ServedModel::Load(argv[1], {}, &model);
  std::vector<skein::Question> questions;
  for (int i = 3; i < argc; ++i) questions.push_back(ParseQuestion(argv[i]));
  std::vector<skein::Decision> decisions;
  if (status.ok()) status = model->Decide(argv[2], questions, &decisions);
  if (!status.ok()) {
    std::fprintf(stderr, "decide: %s\n", status.message().c_str());
    return 1;
  }
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (questions[i].type == skein::Question::Type::kPredicate) {
      std::printf("%s yes %.17g\n", questions[i].instructions.c_str(), decisions[i].probability);
      continue;
    }
    std::printf("%s %s", questions[i].instructions.c_str(), decisions[i].choice.c_str());
    for (const double probability : decisions[i].probabilities) std::printf(" %.17g", probability);
    std::printf("\n");
  }
  return 0;
}
