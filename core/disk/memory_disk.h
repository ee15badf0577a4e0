// A disk in memory that fills up, tears writes and loses power on request: for tests and the
// simulation.
//
//     disk.crash_at_write(0, 100);      // the next file is torn after 100 bytes
//     EXPECT_THROW(save(disk), UnavailableError);
//     disk.recover();                   // the machine is up again: what does a new run find?
#pragma once
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "core/disk/disk.h"

namespace cairn {

// Paths are compared as they are written, apart from doubled and trailing slashes and a ".." behind
// a name; "." means nothing.
//   Thread  any.
class MemoryDisk final : public Disk {
 public:
  // Fault switches.
  //   Full: a write that would bring the sum of all files above `bytes` raises ResourceExhausted
  //   and changes nothing.
  void set_capacity(std::uint64_t bytes);
  //   Crash in the n-th write_atomically from now (0: the next one): it leaves its first `kept`
  //   bytes in a file beside the target, as a torn write does, and raises Unavailable; so does
  //   every later call until recover(). The target keeps its old bytes.
  void crash_at_write(std::uint64_t n, std::uint64_t kept = 0);
  //   Crash at a step, which is a call that changes something: the n-th from now (0: the next one)
  //   loses power before it has done anything, in the middle (of a file half of the bytes lie
  //   beside it, of a folder half of the files are gone), or when it has done all of it, and raises
  //   Unavailable, as every later call does until recover().
  enum class Moment { kBefore, kWithin, kAfter };
  void crash_at_step(std::uint64_t n, Moment moment);
  std::uint64_t steps() const;  // so far
  bool down() const;            // power is lost
  void recover();
  //   What a loss of power leaves of files that grow: of what was not synced the first part, so
  //   many of 100 bytes; at first 50.
  void set_unsynced_kept(int percent);
  //   The power goes now, and is back at once: for a process that is killed in the same moment.
  void interrupt_power();
  //   Rot: flips one bit of a stored byte, as a worn medium does, for what has a checksum to
  //   notice.
  void flip_bit(const std::string& path, std::uint64_t byte, int bit = 0);
  //   Cuts a file short, as a file system may after a crash that came before a sync.
  void truncate(const std::string& path, std::uint64_t bytes);
  //   Without links: files have one name, as the objects of a bucket.
  void set_links(bool links);
  // The sum of all files.
  std::uint64_t bytes_used() const;

  std::string read(const std::string& path) const override;
  void write_atomically(const std::string& path, std::string_view bytes) override;
  std::unique_ptr<AppendedFile> append(const std::string& path,
                                       AppendedFile::Existing existing) override;
  bool exists(const std::string& path) const override;
  std::uint64_t size(const std::string& path) const override;
  std::vector<std::string> list(const std::string& folder) const override;
  void make_folder(const std::string& path) override;
  void remove(const std::string& path) override;
  void remove_tree(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  bool has_links(const std::string& path) const override;
  // Never waits, whatever `patience` is: in a simulation the holder runs on this thread, and could
  // not release it meanwhile.
  std::unique_ptr<DiskLock> lock(const std::string& path, const std::string& holder,
                                 Duration patience) override;

 private:
  struct Locks {
    std::mutex mutex;  // guards the holders: a lock may go on any thread
    std::map<std::string, std::string> holders;
  };
  class Lock;
  struct Crash {
    std::uint64_t writes_left, kept;
  };
  class Step;
  class Appended;
  void check_power() const;
  void lose_power();
  void lose_unsynced();
  std::string& file(const std::string& path);
  void verify_folder_of(const std::string& target, const std::string& path) const;
  std::uint64_t used() const;

  mutable std::mutex mutex_;  // guards everything below: offload threads and loops share one disk
  std::map<std::string, std::string> files_;
  std::set<std::string> folders_;
  std::map<std::string, std::uint64_t> synced_;  // bytes, of files that have more than that
  int unsynced_kept_ = 50;
  std::uint64_t capacity_ = std::numeric_limits<std::uint64_t>::max();
  std::optional<Crash> crash_;
  std::uint64_t steps_ = 0;
  struct StepCrash {
    std::uint64_t step;
    Moment moment;
  };
  std::optional<StepCrash> step_crash_;
  bool down_ = false;
  bool links_ = true;
  std::shared_ptr<Locks> locks_ = std::make_shared<Locks>();
};

}  // namespace cairn
