// ObjectStore: objects by key in one bucket, as S3 has them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::storage {

struct ObjectInfo {
  std::string key;
  std::uint64_t bytes = 0;
};

// The keys below a prefix: objects, and, if a listing stops at "/", the prefixes up to it.
struct ObjectListing {
  std::vector<ObjectInfo> objects;
  std::vector<std::string> prefixes;
};

//   Errors  of all calls: NotFound; PermissionDenied: the credentials; ResourceExhausted: no room;
//           Unknown: the store did not answer well in time, with what it said. Each names the
//           object and the store.
//   Thread  any. Calls block, for as long as S3Options has it at most.
class ObjectStore {
 public:
  enum class PutIf : std::uint8_t { kAny, kAbsent };
  enum class Depth : std::uint8_t { kAll, kOneLevel };

  virtual ~ObjectStore() = default;
  // Replaces the object as a whole.
  //   Errors  with kAbsent, AlreadyExists: another one is there; Unimplemented: the store cannot
  //           tell.
  virtual void put(const std::string& key, std::string_view bytes, PutIf when = PutIf::kAny) = 0;
  // The bytes of the file at `path`, in parts, several at once. A part that fails is sent again by
  // itself. The object is there once all of them are.
  virtual void put_file(const std::string& key, const std::string& path) = 0;
  // Bytes [begin, begin + bytes) of the object, or up to its end.
  virtual std::string get(const std::string& key, std::uint64_t begin, std::uint64_t bytes) = 0;
  // Empty: there is none.
  virtual std::optional<std::uint64_t> size(const std::string& key) = 0;
  virtual ObjectListing list(const std::string& prefix, Depth depth) = 0;
  virtual void remove(const std::string& key) = 0;  // fine if it is absent
  // Gives up the uploads of keys with this prefix that put_file() began and never completed, since
  // its process was killed: their parts take room, and list() does not name them.
  //   Result  how many there were.
  virtual std::size_t abandon_uploads(const std::string& prefix) = 0;
};

}  // namespace cairn::storage
