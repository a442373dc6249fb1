// Answers one message:
//
//   chat MODEL MESSAGE [MAX_TOKENS]

#include <skein/model.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: chat MODEL MESSAGE [MAX_TOKENS]\n");
    return 2;
  }
  std::unique_ptr<skein::ServedModel> model;
  skein::Status status = skein::ServedModel::Load(argv[1], {"--max-model-len", "2048"}, &model);
  skein::ChatOptions options;
  options.temperature = 0;
  if (argc > 3) options.max_tokens = std::atoi(argv[3]);
  skein::ChatAnswer answer;
  if (status.ok()) status = model->Chat({{"user", argv[2]}}, options, &answer);
  if (!status.ok()) {
    std::fprintf(stderr, "chat: %s\n", status.message().c_str());
    return 1;
  }
  std::printf("%s\n", answer.text.c_str());
  return 0;
}
