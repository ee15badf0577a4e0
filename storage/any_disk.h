// Where a checkpoint may lie: on the machine's file system, or in a bucket ("s3://BUCKET/PREFIX").
#pragma once
#include <memory>
#include <string>

#include "core/disk/disk.h"

namespace cairn::storage {

class ObjectStore;

// Takes each path to where it lies: those of buckets to S3, with the credentials of the environment
// (S3Options::from_environment(), asked at a bucket's first use), all others to system_disk().
// Lives as long as the process.
//   Errors  FailedPrecondition: there are no credentials.
//   Thread  any that may block.
Disk& any_disk();

// The store of a bucket, the same that any_disk() uses.
std::shared_ptr<ObjectStore> object_store_of(const std::string& bucket);

// The path that means the same in any working directory: "s3://..." is such a one already.
std::string absolute_place(const std::string& path);

}  // namespace cairn::storage
