#include "apps/gguf/gguf_labels.h"

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "server/json/json.h"

namespace skein {

Status ReadGgufLabels(const GgufModel& file, const GgufKeys& keys, Json* config) {
  constexpr char kLabels[] = "classifier.output_labels";
  SKEIN_ASSIGN_OR_RETURN(const GgufTensor classes, file.Find(kGgufClasses));
  SKEIN_ASSIGN_OR_RETURN(const auto labels, keys.Strings(kLabels));
  if (labels && std::ssize(*labels) != classes.num_rows()) {
    return keys.Error(kLabels, "has " + std::to_string(labels->size()) + " texts; the model has " +
                                   std::to_string(classes.num_rows()) + " classes");
  }
  Json names = Json::object();
  for (int64_t i = 0; i < classes.num_rows(); ++i) {
    const std::string number = std::to_string(i);
    names[number] = labels ? std::string((*labels)[static_cast<size_t>(i)]) : "LABEL_" + number;
  }
  (*config)["id2label"] = std::move(names);
  return Status::Ok();
}

}  // namespace skein
