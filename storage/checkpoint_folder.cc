#include "storage/checkpoint_folder.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/failpoint.h"
#include "core/base/log.h"

namespace cairn::storage {
namespace {

constexpr std::string_view kPrefix = "ckpt-";

std::string last_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

// Eight digits make names sort like numbers in every listing; a larger number is simply longer.
std::string CheckpointFolder::name(std::uint64_t id) {
  std::string digits = std::to_string(id);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return std::string(kPrefix) + digits;
}

// At most 18 digits, which cannot overflow. A user's own "ckpt-old" is not such a name, and so is
// never removed.
std::optional<std::uint64_t> CheckpointFolder::parse_name(const std::string& name) {
  if (!name.starts_with(kPrefix) || name.size() < kPrefix.size() + 8 ||
      name.size() > kPrefix.size() + 18)
    return std::nullopt;
  std::uint64_t id = 0;
  for (const char c : name.substr(kPrefix.size())) {
    if (c < '0' || c > '9') return std::nullopt;
    id = id * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return id;
}

std::string CheckpointFolder::path(std::uint64_t id) const { return folder_ + "/" + name(id); }

std::vector<CheckpointEntry> CheckpointFolder::list() const {
  std::vector<CheckpointEntry> entries;
  for (const std::string& name : disk_.list(folder_)) {
    const std::optional<std::uint64_t> id = parse_name(name);
    if (id.has_value() && disk_.exists(folder_ + "/" + name + "/" + kManifestFile))
      entries.push_back({*id, folder_ + "/" + name});
  }
  std::sort(entries.begin(), entries.end(),
            [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.id < b.id; });
  return entries;
}

std::optional<CheckpointEntry> CheckpointFolder::latest() const {
  const std::vector<CheckpointEntry> all = list();
  if (all.empty()) return std::nullopt;
  return all.back();
}

// Leftovers count: a number that a save once used is not used again, so that what it left cannot be
// mistaken for part of the next one.
std::uint64_t CheckpointFolder::next_id() const {
  std::uint64_t next = 1;
  for (const std::string& name : disk_.list(folder_))
    next = std::max(next, parse_name(name).value_or(0) + 1);
  return next;
}

bool Lineage::holds(std::uint64_t saver, std::uint64_t checkpoint) const {
  if (saver == session) return true;
  return std::any_of(ancestors.begin(), ancestors.end(), [&](const Ancestor& one) {
    return one.session == saver && checkpoint <= one.checkpoint;
  });
}

// The manifests that can be read, by the name of their checkpoint, and the names of those that
// cannot.
struct CheckpointFolder::Known {
  std::map<std::string, Manifest> manifests;
  std::set<std::string> unreadable;
};

CheckpointFolder::Known CheckpointFolder::read_all() const {
  Known known;
  for (const CheckpointEntry& entry : list()) {
    const std::string name = last_name(entry.path);
    try {
      known.manifests.emplace(name, read_manifest(disk_, entry.path));
    } catch (const DataLossError&) {
      known.unreadable.insert(name);
    } catch (const UnimplementedError&) {  // a later release's
      known.unreadable.insert(name);
    }
  }
  return known;
}

// First what stays is collected (whatever cannot be read, other runs', the newest of this one),
// then the rest is removed. In doubt a checkpoint stays: a manifest of a later release cannot be
// read here and is perfectly good there. A delta needs no checkpoint but itself: it has links to
// the files of those that it goes back to, and a file is there as long as any of its names.
std::vector<std::string> CheckpointFolder::prune(std::size_t keep_last, const Lineage& run,
                                                 std::size_t keep_every) {
  const Known known = read_all();
  std::set<std::string> kept = known.unreadable;
  std::vector<std::string> own;  // oldest first, as their names sort
  for (const CheckpointEntry& entry : list()) {
    const auto found = known.manifests.find(last_name(entry.path));
    if (found != known.manifests.end() && run.holds(found->second.session, entry.id))
      own.push_back(found->first);
  }
  if (!disk_.has_links(folder_) && !known.unreadable.empty()) {
    log_warning("nothing is removed in ", folder_, ": the manifest of ", *known.unreadable.begin(),
                " cannot be read, and might name any rows there");
    return {};
  }
  own.resize(own.size() - std::min(own.size(), keep_last));
  std::vector<std::string> spared;
  if (keep_every > 0) {
    const auto rest = std::stable_partition(own.begin(), own.end(), [&](const auto& name) {
      return *parse_name(name) % keep_every != 0;
    });
    spared.assign(rest, own.end());
    own.erase(rest, own.end());
  }
  const std::set<std::string> old(own.begin(), own.end());
  for (const auto& [name, manifest] : known.manifests)
    if (!old.contains(name)) kept.insert(name);
  if (!disk_.has_links(folder_)) {
    std::vector<Manifest> going, staying;
    for (const auto& [name, manifest] : known.manifests)
      (old.contains(name) ? going : staying).push_back(manifest);
    return remove_unnamed(going, staying, run);
  }
  std::vector<std::string> removed;
  for (const std::string& name : disk_.list(folder_)) {
    if (!parse_name(name).has_value() || kept.count(name) != 0) continue;
    const std::string path = folder_ + "/" + name;
    failpoint("prune.begin");
    disk_.remove(path + "/" + kManifestFile);  // first: from here on it does not exist
    failpoint("prune.unlisted");
    disk_.remove_tree(path);
    failpoint("prune.end");
    removed.push_back(path);
  }
  for (const std::string& name : spared) remove_replaced(known.manifests.at(name), name);
  return removed;
}

// Databases that a consolidation has put others in place of. In the newest checkpoints they stay,
// as a ps may be reading them.
void CheckpointFolder::remove_replaced(const Manifest& manifest, const std::string& name) {
  std::set<std::string> named = {kManifestFile};
  for (const DatabaseInfo& database : manifest.databases) named.insert(database.name);
  for (const std::string& there : disk_.list(folder_ + "/" + name))
    if (!named.contains(there)) disk_.remove_tree(folder_ + "/" + name + "/" + there);
}

// Manifests first, so that none names rows that are gone. Then rows that none of those that stay
// names: what the old ones had, and what attempts of this session have left that came to nothing.
// Those of other sessions may be on their way to a checkpoint.
std::vector<std::string> CheckpointFolder::remove_unnamed(const std::vector<Manifest>& old,
                                                          const std::vector<Manifest>& kept,
                                                          const Lineage& run) {
  std::set<std::string> named, unnamed;
  for (const Manifest& manifest : kept)
    for (const DatabaseInfo& database : manifest.databases)
      named.insert(rows_folder_of(database.name));
  std::vector<std::string> removed;
  for (const Manifest& manifest : old) {
    removed.push_back(path(manifest.checkpoint));
    disk_.remove_tree(removed.back());
    for (const DatabaseInfo& database : manifest.databases)
      unnamed.insert(rows_folder_of(database.name));
  }
  const std::string own = rows_folder_name(run.session, 0).substr(0, 22);
  for (const std::string& name : disk_.list(folder_))
    if (name.starts_with(own)) unnamed.insert(name);
  for (const std::string& name : unnamed)
    if (!name.empty() && !named.contains(name)) disk_.remove_tree(folder_ + "/" + name);
  disk_.remove_unfinished(folder_ + "/" + own);  // by a ps that was killed as it uploaded
  return removed;
}

}  // namespace cairn::storage
