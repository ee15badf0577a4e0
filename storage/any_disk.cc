#include "storage/any_disk.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "storage/object_store/object_disk.h"
#include "storage/object_store/s3_store.h"

namespace cairn::storage {
namespace {

ObjectDisk& object_disk() {
  static ObjectDisk disk(
      [](const std::string& bucket) { return make_s3_store(S3Options::from_environment(bucket)); });
  return disk;
}

class AnyDisk final : public Disk {
 public:
  std::string read(const std::string& path) const override { return at(path).read(path); }
  void read_in_pieces(const std::string& path,
                      const std::function<void(std::string_view)>& take) const override {
    at(path).read_in_pieces(path, take);
  }
  void write_atomically(const std::string& path, std::string_view bytes) override {
    at(path).write_atomically(path, bytes);
  }
  void write_new(const std::string& path, std::string_view bytes, SingleWriter single) override {
    at(path).write_new(path, bytes, single);
  }
  std::unique_ptr<AppendedFile> append(const std::string& path,
                                       AppendedFile::Existing existing) override {
    return at(path).append(path, existing);
  }
  bool exists(const std::string& path) const override { return at(path).exists(path); }
  std::uint64_t size(const std::string& path) const override { return at(path).size(path); }
  std::vector<std::string> list(const std::string& folder) const override {
    return at(folder).list(folder);
  }
  void make_folder(const std::string& path) override { at(path).make_folder(path); }
  void remove(const std::string& path) override { at(path).remove(path); }
  void remove_tree(const std::string& path) override { at(path).remove_tree(path); }
  std::size_t remove_unfinished(const std::string& path) override {
    return at(path).remove_unfinished(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    one_place(from, to).rename(from, to);
  }
  void link_files(const std::string& from, const std::string& to,
                  const std::vector<std::string>& names) override {
    one_place(from, to).link_files(from, to, names);
  }
  bool has_links(const std::string& path) const override { return at(path).has_links(path); }
  std::unique_ptr<DiskLock> lock(const std::string& path, const std::string& holder,
                                 Duration patience) override {
    return at(path).lock(path, holder, patience);
  }

 private:
  Disk& at(const std::string& path) const {
    return is_object_path(path) ? static_cast<Disk&>(object_disk()) : system_disk();
  }
  Disk& one_place(const std::string& from, const std::string& to) const {
    if (is_object_path(from) != is_object_path(to))
      throw UnimplementedError(str(from, " and ", to, " lie in different stores"));
    return at(from);
  }
};

}  // namespace

Disk& any_disk() {
  static AnyDisk disk;
  return disk;
}

std::shared_ptr<ObjectStore> object_store_of(const std::string& bucket) {
  return object_disk().store(bucket);
}

std::string absolute_place(const std::string& path) {
  if (!is_object_path(path)) return std::filesystem::absolute(path).lexically_normal().string();
  const ObjectPath at = ObjectPath::of(path);
  return str(kObjectScheme, at.bucket, at.key.empty() ? "" : "/", at.key);
}

}  // namespace cairn::storage
