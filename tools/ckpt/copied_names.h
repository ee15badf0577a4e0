// The names that a checkpoint's databases have at the place that it is copied to.
//
// Where files can have several names, all of them lie in the checkpoint's folder. In a bucket they
// lie beside it, each in the folder of the checkpoint that wrote it, so that checkpoints which
// share one share the objects (docs/checkpoint-format.md).
//   Thread  any.
#pragma once
#include "storage/manifest.h"

namespace cairn::tools::ckpt {

// The same manifest for a folder of which `links` says whether files can have several names there
// (Disk::has_links()). Its databases are in the same order, and their files too.
//   Errors  DataLoss: a name is none of a database.
storage::Manifest named_for(const storage::Manifest& manifest, bool links);

}  // namespace cairn::tools::ckpt
