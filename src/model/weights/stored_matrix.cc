#include "model/weights/stored_matrix.h"

#include <utility>

#include "model/weights/fused_expert.h"
#include "model/weights/quantized_matrix.h"

namespace skein {

Result<std::shared_ptr<const StoredMatrix>> OpenStoredMatrix(const ModelFiles& files,
                                                             const std::string& name, int32_t n,
                                                             int32_t k,
                                                             const QuantizationConfig& config,
                                                             std::vector<std::string>* tensors) {
  *tensors = FusedExpert::TensorNames(files, name);
  if (!tensors->empty()) return FusedExpert::Open(files, name, n, k);
  *tensors = QuantizedMatrix::TensorNames(files, name, config.method);
  if (tensors->empty()) return std::shared_ptr<const StoredMatrix>();
  SKEIN_ASSIGN_OR_RETURN(auto matrix, QuantizedMatrix::Open(files, name, n, k, config));
  return std::shared_ptr<const StoredMatrix>(
      std::make_shared<const QuantizedMatrix>(std::move(matrix)));
}

}  // namespace skein
