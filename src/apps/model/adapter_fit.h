#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/lora_adapter.h"
#include "io/safetensors_header.h"
#include "model/weights/tensor_list.h"

namespace skein {

// Refuses an adapter (from `dir`) that changes a weight which the model does not have or has in
// another shape.
inline Status CheckAdapterFits(const LoraAdapter& adapter, const std::vector<ModelTensor>& tensors,
                               const std::string& dir) {
  std::map<std::string_view, const ModelTensor*> by_name;
  for (const ModelTensor& tensor : tensors) by_name[tensor.name] = &tensor;
  const auto refuse = [&](const std::string& problem) {
    return Status(StatusCode::kInvalidArgument, dir + " changes " + problem);
  };
  for (const auto& [weight, shape] : adapter.Weights()) {
    const auto it = by_name.find(weight);
    if (it == by_name.end()) return refuse("'" + weight + "', which the model does not have");
    if (it->second->shape != shape) {
      return refuse("'" + weight + "' of shape " + ShapeString(shape) + "; the model's is " +
                    ShapeString(it->second->shape));
    }
  }
  return Status::Ok();
}

}  // namespace skein
