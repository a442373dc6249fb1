#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "skein/request.h"

namespace skein {

// Scales the values to length 1; a zero vector stays unchanged. The sum of squares is computed in
// binary64, in the order of the elements, and so has the same bits on every machine.
void Normalize(std::span<float> values);

// The cosine of the angle between two vectors of one size, in binary64; 0 if one is zero.
double Cosine(std::span<const float> a, std::span<const float> b);

// The vector [size] with the elements of a sparse embedding.
std::vector<float> DenseVector(const ReadValues& sparse, int32_t size);

// The sparse embedding with the weight of each token that occurs. Tokens beyond the table have
// none.
ReadValues WeightsOfTokens(std::span<const float> weights, std::vector<TokenId> tokens);

// The sum of the products of two sparse embeddings' elements, in binary64 and in the order of ids.
double SparseProduct(const ReadValues& a, const ReadValues& b);
// The cosine of two sparse embeddings; 0 if one is zero.
double SparseCosine(const ReadValues& a, const ReadValues& b);

// How a classification head's outputs become scores.
enum class ClassActivation { kNone, kSoftmax, kSigmoid };
std::vector<float> Activate(std::span<const float> values, ClassActivation activation);

// Appends a JSON array with, for each value, the shortest decimal that reads back as the same
// float; null for a value that is not finite. This is several times as fast as building a JSON
// value and printing it.
void AppendFloats(std::span<const float> values, std::string* out);

}  // namespace skein
