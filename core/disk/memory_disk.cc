// The disk of tests and of the simulation. Each call takes the lock once and checks the power
// before it does anything, so that a call after the crash changes nothing. The fault switches
// themselves (flip_bit, truncate) work without power: they are the damage that a later reader
// finds.
#include "core/disk/memory_disk.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn {
namespace {

// Doubled and trailing slashes dropped, so that "a//b/" and "a/b" are one key, as is "a/c/../b".
std::string normal(const std::string& path) {
  std::string made;
  for (char c : path)
    if (c != '/' || made.empty() || made.back() != '/') made.push_back(c);
  while (made.size() > 1 && made.back() == '/') made.pop_back();
  constexpr std::string_view kUp = "/../";
  for (std::size_t up = made.find(kUp); up != std::string::npos && up > 0; up = made.find(kUp)) {
    const std::size_t begin = made.rfind('/', up - 1);
    if (begin == std::string::npos)
      made.erase(0, up + kUp.size());
    else
      made.erase(begin, up + kUp.size() - 1 - begin);
  }
  return made;
}

// Whether `path` lies within `folder`. The slash is looked at too: "a/bc" does not lie within
// "a/b".
bool is_under(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.compare(0, folder.size(), folder) == 0 &&
         (folder == "/" || path[folder.size()] == '/');
}

}  // namespace

void MemoryDisk::set_capacity(std::uint64_t bytes) {
  std::lock_guard hold(mutex_);
  capacity_ = bytes;
}

void MemoryDisk::crash_at_write(std::uint64_t n, std::uint64_t kept) {
  std::lock_guard hold(mutex_);
  crash_ = Crash{n, kept};
}

void MemoryDisk::crash_at_step(std::uint64_t n, Moment moment) {
  std::lock_guard hold(mutex_);
  step_crash_ = StepCrash{steps_ + n, moment};
}

std::uint64_t MemoryDisk::steps() const {
  std::lock_guard hold(mutex_);
  return steps_;
}

bool MemoryDisk::down() const {
  std::lock_guard hold(mutex_);
  return down_;
}

void MemoryDisk::recover() {
  std::lock_guard hold(mutex_);
  down_ = false;
  crash_.reset();
  step_crash_.reset();
}

// A call that changes something: made when it begins, with the lock held, and told when it has
// done all of it.
class MemoryDisk::Step {
 public:
  explicit Step(MemoryDisk& disk) : disk_(disk) {
    disk_.check_power();
    const std::uint64_t number = disk_.steps_++;
    if (!disk_.step_crash_ || disk_.step_crash_->step != number) return;
    moment_ = disk_.step_crash_->moment;
    if (moment_ == Moment::kBefore) disk_.lose_power();
  }
  bool ends_within() const { return moment_ == Moment::kWithin; }
  void done() const {
    if (moment_.has_value()) disk_.lose_power();
  }

 private:
  MemoryDisk& disk_;
  std::optional<Moment> moment_;
};

void MemoryDisk::lose_power() {
  step_crash_.reset();
  down_ = true;
  lose_unsynced();
  check_power();
}

void MemoryDisk::lose_unsynced() {
  for (const auto& [path, synced] : synced_)
    if (const auto found = files_.find(path);
        found != files_.end() && found->second.size() > synced)
      found->second.resize(synced + (found->second.size() - synced) *
                                        static_cast<std::uint64_t>(unsynced_kept_) / 100);
  synced_.clear();
}

void MemoryDisk::interrupt_power() {
  std::lock_guard hold(mutex_);
  lose_unsynced();
}

void MemoryDisk::set_unsynced_kept(int percent) {
  std::lock_guard hold(mutex_);
  unsynced_kept_ = percent;
}

void MemoryDisk::flip_bit(const std::string& path, std::uint64_t byte, int bit) {
  std::lock_guard hold(mutex_);
  auto& stored = file(path).at(byte);
  stored = static_cast<char>(stored ^ (1 << bit));
}

void MemoryDisk::truncate(const std::string& path, std::uint64_t bytes) {
  std::lock_guard hold(mutex_);
  auto& stored = file(path);
  stored.resize(std::min<std::uint64_t>(bytes, stored.size()));
}

std::uint64_t MemoryDisk::bytes_used() const {
  std::lock_guard hold(mutex_);
  return used();
}

std::uint64_t MemoryDisk::used() const {
  std::uint64_t sum = 0;
  for (const auto& [path, bytes] : files_) sum += bytes.size();
  return sum;
}

void MemoryDisk::check_power() const {
  if (down_) throw UnavailableError("the disk lost power");
}

std::string& MemoryDisk::file(const std::string& path) {
  auto found = files_.find(normal(path));
  if (found == files_.end()) throw NotFoundError(str("opening ", path, ": no such file"));
  return found->second;
}

// As on a real disk, writing a file does not make its folder: code that forgets make_folder() fails
// here too.
void MemoryDisk::verify_folder_of(const std::string& target, const std::string& path) const {
  const std::string folder = folder_of(target);
  if (folder != "." && folder != "/" && !folders_.contains(folder))
    throw NotFoundError(str("creating ", path, ": no such folder"));
}

std::string MemoryDisk::read(const std::string& path) const {
  std::lock_guard hold(mutex_);
  check_power();
  return const_cast<MemoryDisk*>(this)->file(path);
}

void MemoryDisk::write_atomically(const std::string& path, std::string_view bytes) {
  std::lock_guard hold(mutex_);
  const Step step(*this);
  std::string target = normal(path);
  verify_folder_of(target, path);
  // The name of the leftover is of the form that SystemDisk gives its temporary files: what cleans
  // up after a crash must recognise it. The crash is forgotten at once, so that recover() leaves a
  // disk that works.
  if (crash_ && crash_->writes_left-- == 0) {
    files_[target + ".0.tmp"] =
        std::string(bytes.substr(0, std::min<std::uint64_t>(crash_->kept, bytes.size())));
    crash_.reset();
    lose_power();
  }
  if (step.ends_within()) {
    files_[target + ".0.tmp"] = std::string(bytes.substr(0, bytes.size() / 2));
    step.done();
  }
  // Old and new stand beside each other until the rename, so both must fit.
  if (used() + bytes.size() > capacity_)
    throw ResourceExhaustedError(str("writing ", path, ": no space left on the disk"));
  files_[target] = std::string(bytes);
  synced_.erase(target);
  step.done();
}

// A file that grows. It finds its bytes by its path at each call, as the disk may have lost power
// and another process may have gone on with the file meanwhile.
class MemoryDisk::Appended final : public AppendedFile {
 public:
  Appended(MemoryDisk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}

  void write(std::string_view bytes) override {
    std::lock_guard hold(disk_.mutex_);
    const Step step(disk_);
    if (disk_.used() + bytes.size() > disk_.capacity_)
      throw ResourceExhaustedError(str("writing ", path_, ": no space left on the disk"));
    std::string& stored = disk_.file(path_);
    disk_.synced_.try_emplace(normal(path_), stored.size());
    stored += step.ends_within() ? bytes.substr(0, bytes.size() / 2) : bytes;
    step.done();
  }
  void sync() override {
    std::lock_guard hold(disk_.mutex_);
    const Step step(disk_);
    if (step.ends_within()) step.done();
    disk_.synced_.erase(normal(path_));
    step.done();
  }
  std::uint64_t size() const override { return disk_.size(path_); }
  const std::string& path() const override { return path_; }

 private:
  MemoryDisk& disk_;
  const std::string path_;
};

std::unique_ptr<AppendedFile> MemoryDisk::append(const std::string& path,
                                                 AppendedFile::Existing existing) {
  std::lock_guard hold(mutex_);
  const Step step(*this);
  if (step.ends_within()) step.done();
  const std::string target = normal(path);
  if (files_.contains(target)) {
    if (existing == AppendedFile::Existing::kRefuse)
      throw AlreadyExistsError(str("opening ", path, ": it is there already"));
  } else {
    verify_folder_of(target, path);
    files_[target];
  }
  step.done();
  return std::make_unique<Appended>(*this, path);
}

bool MemoryDisk::exists(const std::string& path) const {
  std::lock_guard hold(mutex_);
  check_power();
  return files_.contains(normal(path)) || folders_.contains(normal(path));
}

std::uint64_t MemoryDisk::size(const std::string& path) const { return read(path).size(); }

std::vector<std::string> MemoryDisk::list(const std::string& folder) const {
  std::lock_guard hold(mutex_);
  check_power();
  std::string parent = normal(folder);
  std::set<std::string> names;
  auto add = [&](const std::string& path) {
    if (path != parent && folder_of(path) == parent) names.insert(path.substr(path.rfind('/') + 1));
  };
  for (const auto& [path, bytes] : files_) add(path);
  for (const auto& path : folders_) add(path);
  return {names.begin(), names.end()};
}

// Each parent is a folder of its own in the set; list() and exists() need no more than that.
void MemoryDisk::make_folder(const std::string& path) {
  std::lock_guard hold(mutex_);
  const Step step(*this);
  if (step.ends_within()) step.done();
  for (std::string folder = normal(path); folder != "." && folder != "/";
       folder = folder_of(folder)) {
    if (files_.contains(folder))
      throw AlreadyExistsError(str("making the folder ", path, ": ", folder, " is a file"));
    folders_.insert(folder);
  }
  step.done();
}

void MemoryDisk::remove(const std::string& path) {
  std::lock_guard hold(mutex_);
  const Step step(*this);
  if (!step.ends_within()) {
    files_.erase(normal(path));
    synced_.erase(normal(path));
  }
  step.done();
}

// The manifest, if it is there, is the first to go: its name stands before those of databases.
void MemoryDisk::remove_tree(const std::string& path) {
  std::lock_guard hold(mutex_);
  const Step step(*this);
  std::string root = normal(path);
  auto gone = [&](const std::string& p) { return p == root || is_under(p, root); };
  auto left = std::count_if(files_.begin(), files_.end(),
                            [&](const auto& entry) { return gone(entry.first); });
  if (step.ends_within()) left -= left / 2;
  std::erase_if(files_, [&](const auto& entry) { return gone(entry.first) && left-- > 0; });
  if (step.ends_within()) step.done();
  std::erase_if(synced_, [&](const auto& entry) { return gone(entry.first); });
  std::erase_if(folders_, gone);
  step.done();
}

void MemoryDisk::rename(const std::string& from, const std::string& to) {
  std::lock_guard hold(mutex_);
  const Step step(*this);
  if (step.ends_within()) step.done();  // it is atomic
  std::string source = normal(from), target = normal(to);
  if (source == target) return;
  if (files_.contains(source)) {
    files_[target] = std::move(files_[source]);
    files_.erase(source);
    synced_.erase(target);
    if (auto moved = synced_.extract(source)) {
      moved.key() = target;
      synced_.insert(std::move(moved));
    }
    return step.done();
  }
  if (!folders_.contains(source)) throw NotFoundError(str("renaming ", from, ": no such file"));
  auto moved = [&](const std::string& p) { return target + p.substr(source.size()); };
  // A folder takes everything below it along. Both maps are built anew, because the paths are their
  // keys.
  std::map<std::string, std::string> files;
  for (auto& [path, bytes] : files_)
    files[is_under(path, source) ? moved(path) : path] = std::move(bytes);
  std::set<std::string> folders;
  for (const auto& path : folders_)
    folders.insert(path == source || is_under(path, source) ? moved(path) : path);
  files_ = std::move(files);
  folders_ = std::move(folders);
  step.done();
}

// A lock shares the table of holders with its disk, so that it may be destroyed after the disk.
// recover() releases none: a lock lives as long as its process, and what crashed is the disk.
class MemoryDisk::Lock final : public DiskLock {
 public:
  Lock(std::shared_ptr<Locks> locks, std::string path)
      : locks_(std::move(locks)), path_(std::move(path)) {}
  ~Lock() override {
    std::lock_guard hold(locks_->mutex);
    locks_->holders.erase(path_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::shared_ptr<Locks> locks_;
  std::string path_;
};

std::unique_ptr<DiskLock> MemoryDisk::lock(const std::string& path, const std::string& holder,
                                           Duration) {
  {
    std::lock_guard hold(mutex_);
    check_power();
  }
  std::lock_guard hold(locks_->mutex);
  const auto [found, fresh] = locks_->holders.emplace(normal(path), holder);
  if (!fresh) throw FailedPreconditionError(found->second);
  return std::make_unique<Lock>(locks_, normal(path));
}

void MemoryDisk::set_links(bool links) {
  const std::lock_guard hold(mutex_);
  links_ = links;
}

bool MemoryDisk::has_links(const std::string&) const {
  const std::lock_guard hold(mutex_);
  return links_;
}

}  // namespace cairn
