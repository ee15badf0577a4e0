// RocksDB's files in a bucket, to be read: a database there is opened where it lies, and of its
// sorted files no more comes over than a cursor asks for and reads ahead.
#pragma once
#include <rocksdb/file_system.h>

#include <exception>
#include <memory>
#include <string>

#include "core/disk/disk.h"

namespace cairn::storage {

// Serves the files of one folder, as they were listed when this was made.
//   Memory  24 MB of pieces of objects, whatever the number of files.
//   Thread  as the database; pieces are fetched by threads of its own.
class ObjectFileSystem : public rocksdb::FileSystemWrapper {
 public:
  // Errors  those of ObjectStore.
  static std::shared_ptr<ObjectFileSystem> of_folder(const std::string& folder);
  const char* Name() const override { return "cairn-objects"; }
  // Throws what kept a file from being read, if anything has: RocksDB makes of it that the file is
  // damaged.
  virtual void rethrow_trouble() const = 0;

 protected:
  ObjectFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
};

}  // namespace cairn::storage
