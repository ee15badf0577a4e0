// RecordLog: a file of records that grows, as a journal needs it: what a loss of power leaves of it
// is told from what a worn medium has made of it.
//
// Each record is written with its length, a checksum, and how much of the file no loss of power can
// take back from then on. A record that does not read as it was written is torn if it lies behind
// all of which some record says so: the power went first, and it is cut off with all behind it.
// Otherwise it is damaged.
//   Thread  one; calls block. The functions: any.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cairn {

class AppendedFile;
class Disk;

class RecordLog {
 public:
  // Makes the file, with these records in it, as a whole: after a crash it has all of them, or is
  // not there. A file of that name is replaced.
  //   Errors  those of Disk.
  static RecordLog make(Disk& disk, const std::string& path, std::span<const std::string> records);
  // Goes on with a file that read_records() has read; what was torn is gone.
  struct Found;
  static RecordLog go_on(Disk& disk, const std::string& path, const Found& found);

  RecordLog(RecordLog&&) noexcept;
  RecordLog& operator=(RecordLog&&) noexcept;
  ~RecordLog();

  // Appends the records by one write, or none of them if it throws.
  //   Errors  ResourceExhausted, and others of the disk.
  void append(std::span<const std::string> records);
  // No loss of power takes back what was appended before. After an error, which leaves open what
  // the disk has kept, nothing is appended any more: FailedPrecondition.
  void sync();
  std::uint64_t size() const;  // in bytes
  const std::string& path() const;

  struct Found {
    std::vector<std::string> records;
    std::uint64_t bytes = 0;  // of the file, that they take
    bool torn = false;        // something behind them was cut off
  };

 private:
  explicit RecordLog(std::unique_ptr<AppendedFile> file);
  void verify_sound() const;

  std::unique_ptr<AppendedFile> file_;
  std::uint64_t synced_ = 0;  // bytes
  bool failed_ = false;
};

// The records of a file. Their bytes are as they were given, and aligned to 8 bytes.
//   Errors  NotFound. DataLoss: a record is damaged; names the file and the byte.
RecordLog::Found read_records(const Disk& disk, const std::string& path);
// How much of a file its records know to be synced: a loss of power may take the rest.
std::uint64_t synced_bytes(const Disk& disk, const std::string& path);

}  // namespace cairn
