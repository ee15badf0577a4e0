#include "storage/object_store/object_disk.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace cairn::storage {
namespace {

// A piece is held twice while it is handed on: as it came, and as it goes.
constexpr std::uint64_t kReadBytes = std::uint64_t{8} << 20;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // what a Disk promises

class NoLock final : public DiskLock {};

std::string folder_prefix(const std::string& key) { return key.empty() ? "" : key + "/"; }

}  // namespace

bool is_object_path(const std::string& path) { return path.starts_with(kObjectScheme); }

ObjectPath ObjectPath::of(const std::string& path) {
  std::vector<std::string> names;
  std::string_view left = std::string_view(path).substr(std::string_view(kObjectScheme).size());
  while (!left.empty()) {
    const std::size_t end = std::min(left.find('/'), left.size());
    const std::string_view name = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (name.empty() || name == ".") continue;
    if (name != "..") {
      names.emplace_back(name);
      continue;
    }
    if (names.size() < 2) throw InvalidArgumentError(str("\"", path, "\" leads out of its bucket"));
    names.pop_back();
  }
  if (names.empty())
    throw InvalidArgumentError(str("\"", path, "\" names no bucket: s3://BUCKET/PREFIX is wanted"));
  ObjectPath object{names.front(), ""};
  for (std::size_t i = 1; i < names.size(); ++i) object.key += (i == 1 ? "" : "/") + names[i];
  return object;
}

std::shared_ptr<ObjectStore> ObjectDisk::store(const std::string& bucket) const {
  const std::lock_guard hold(mutex_);
  std::shared_ptr<ObjectStore>& store = stores_[bucket];
  if (store == nullptr) store = open_(bucket);
  return store;
}

std::string ObjectDisk::read(const std::string& path) const {
  std::string all;
  read_in_pieces(path, [&all](std::string_view piece) { all += piece; });
  return all;
}

// A list that is longer than its size said is another object by now.
void ObjectDisk::read_in_pieces(const std::string& path,
                                const std::function<void(std::string_view)>& take) const {
  const ObjectPath at = ObjectPath::of(path);
  const std::uint64_t bytes = size(path);
  for (std::uint64_t begin = 0; begin < bytes; begin += kReadBytes) {
    const std::uint64_t wanted = std::min(kReadBytes, bytes - begin);
    const std::string read = store(at.bucket)->get(at.key, begin, wanted);
    if (read.size() != wanted) throw DataLossError(str(path, " became shorter while it was read"));
    for (std::size_t done = 0; done < read.size(); done += kPieceBytes)
      take(std::string_view(read).substr(done, kPieceBytes));
  }
}

void ObjectDisk::write_atomically(const std::string& path, std::string_view bytes) {
  const ObjectPath at = ObjectPath::of(path);
  store(at.bucket)->put(at.key, bytes);
}

void ObjectDisk::write_new(const std::string& path, std::string_view bytes, SingleWriter single) {
  const ObjectPath at = ObjectPath::of(path);
  try {
    store(at.bucket)->put(at.key, bytes, ObjectStore::PutIf::kAbsent);
  } catch (const UnimplementedError& error) {
    if (single == SingleWriter::kNo)
      throw UnimplementedError(
          str(error.what(),
              ". Two runs that save there at once would not notice one another, so "
              "nothing is saved: if this run is the only one, say so by "
              "--store-single-writer (C++: CheckpointPolicy::single_writer)"));
    if (exists(path)) throw AlreadyExistsError(str(path, " is there already"));
    store(at.bucket)->put(at.key, bytes);
  }
}

bool ObjectDisk::exists(const std::string& path) const {
  const ObjectPath at = ObjectPath::of(path);
  return !at.key.empty() && store(at.bucket)->size(at.key).has_value();
}

std::uint64_t ObjectDisk::size(const std::string& path) const {
  const ObjectPath at = ObjectPath::of(path);
  const auto bytes = store(at.bucket)->size(at.key);
  if (!bytes.has_value()) throw NotFoundError(str("there is no object ", path));
  return *bytes;
}

std::vector<std::string> ObjectDisk::list(const std::string& folder) const {
  const ObjectPath at = ObjectPath::of(folder);
  const std::string prefix = folder_prefix(at.key);
  const ObjectListing found = store(at.bucket)->list(prefix, ObjectStore::Depth::kOneLevel);
  std::vector<std::string> names;
  for (const ObjectInfo& object : found.objects)
    if (object.key.size() > prefix.size()) names.push_back(object.key.substr(prefix.size()));
  for (const std::string& below : found.prefixes)
    names.push_back(below.substr(prefix.size(), below.size() - prefix.size() - 1));
  std::sort(names.begin(), names.end());
  return names;
}

void ObjectDisk::remove(const std::string& path) {
  const ObjectPath at = ObjectPath::of(path);
  store(at.bucket)->remove(at.key);
}

void ObjectDisk::remove_tree(const std::string& path) {
  const ObjectPath at = ObjectPath::of(path);
  if (at.key.empty())
    throw InvalidArgumentError(str(path, " is a whole bucket: it is not removed"));
  const auto bucket = store(at.bucket);
  for (const ObjectInfo& object :
       bucket->list(folder_prefix(at.key), ObjectStore::Depth::kAll).objects)
    bucket->remove(object.key);
  bucket->remove(at.key);
}

std::size_t ObjectDisk::remove_unfinished(const std::string& path) {
  const ObjectPath at = ObjectPath::of(path);
  return store(at.bucket)->abandon_uploads(at.key + (path.ends_with('/') ? "/" : ""));
}

void ObjectDisk::rename(const std::string& from, const std::string&) {
  throw UnimplementedError(str("objects have no other names: ", from, " cannot be renamed"));
}

void ObjectDisk::link_files(const std::string& from, const std::string&,
                            const std::vector<std::string>&) {
  throw UnimplementedError(str("objects have no other names: ", from, " cannot be linked"));
}

std::unique_ptr<DiskLock> ObjectDisk::lock(const std::string&, const std::string&, Duration) {
  return std::make_unique<NoLock>();
}

}  // namespace cairn::storage
