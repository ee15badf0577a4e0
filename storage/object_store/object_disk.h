// ObjectDisk: a bucket as a Disk, so that checkpoints, manifests and their readers go there by a
// path: "s3://BUCKET/PREFIX/ckpt-00000001/MANIFEST.json".
//
//   Folders  are the prefixes of keys: they are made by nothing and gone when they are empty.
//   Links    there are none (has_links()), nor locks: lock() excludes nobody, and write_new() is
//            what two writers meet at.
//   Writes   replace an object as a whole, which is what write_atomically() promises.
//   Thread   any that may block.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/disk/disk.h"
#include "storage/object_store/object_store.h"

namespace cairn::storage {

inline constexpr const char* kObjectScheme = "s3://";
bool is_object_path(const std::string& path);

// "s3://bucket/a/../b" is bucket "bucket" and key "b".
//   Errors  InvalidArgument: no bucket, or ".." above the bucket.
struct ObjectPath {
  std::string bucket, key;
  static ObjectPath of(const std::string& path);
};

class ObjectDisk final : public Disk {
 public:
  // Called once for each bucket that is used.
  using OpenBucket = std::function<std::shared_ptr<ObjectStore>(const std::string& bucket)>;
  explicit ObjectDisk(OpenBucket open) : open_(std::move(open)) {}

  // The store of a path's bucket.
  std::shared_ptr<ObjectStore> store(const std::string& bucket) const;

  std::string read(const std::string& path) const override;
  void read_in_pieces(const std::string& path,
                      const std::function<void(std::string_view)>& take) const override;
  void write_atomically(const std::string& path, std::string_view bytes) override;
  void write_new(const std::string& path, std::string_view bytes, SingleWriter single) override;
  bool exists(const std::string& path) const override;
  std::uint64_t size(const std::string& path) const override;
  std::vector<std::string> list(const std::string& folder) const override;
  void make_folder(const std::string&) override {}
  void remove(const std::string& path) override;
  void remove_tree(const std::string& path) override;
  std::size_t remove_unfinished(const std::string& path) override;
  //   Errors  Unimplemented.
  void rename(const std::string& from, const std::string& to) override;
  void link_files(const std::string& from, const std::string& to,
                  const std::vector<std::string>& names) override;
  bool has_links(const std::string&) const override { return false; }
  std::unique_ptr<DiskLock> lock(const std::string& path, const std::string& holder,
                                 Duration patience) override;

 private:
  OpenBucket open_;
  mutable std::mutex mutex_;  // guards `stores_`
  mutable std::map<std::string, std::shared_ptr<ObjectStore>> stores_;
};

}  // namespace cairn::storage
