#pragma once

#include <memory>

#include "server/json/field_reader.h"
#include "server/router.h"

namespace skein {

// The task token_embed of /pooling, for ColBERT models: the vectors of each text's tokens. The
// field prompt_name says whether the texts are queries or documents.
Status StartTokenEmbeddings(const ServerContext& context, FieldReader* reader,
                            std::shared_ptr<Responder> responder);

}  // namespace skein
