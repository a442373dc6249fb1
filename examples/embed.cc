// Prints the embedding of each text, one line of numbers each:
//
//   embed MODEL TEXT...

#include <skein/model.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: embed MODEL TEXT...\n");
    return 2;
  }
  std::unique_ptr<skein::ServedModel> model;
  skein::Status status = skein::ServedModel::Load(argv[1], {}, &model);
  const std::vector<std::string> texts(argv + 2, argv + argc);
  std::vector<std::vector<float>> vectors;
  if (status.ok()) status = model->Embed(texts, &vectors);
  if (!status.ok()) {
    std::fprintf(stderr, "embed: %s\n", status.message().c_str());
    return 1;
  }
  for (const std::vector<float>& vector : vectors) {
    for (const float value : vector) std::printf("%.9g ", value);
    std::printf("\n");
  }
  return 0;
}
