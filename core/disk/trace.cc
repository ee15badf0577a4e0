// Spans are kept in one buffer behind one mutex. That would be wrong on a hot path; here it only
// runs while a trace is recorded, and one buffer makes "the newest spans of the process" a simple
// thing to keep.
#include "core/disk/trace.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/disk/disk.h"

namespace cairn {
namespace {

constexpr std::size_t kKept = 1 << 18;     // spans; older ones are overwritten
constexpr std::size_t kThreadsMax = 1024;  // threads whose names are kept
// Names that were made up while the process ran; later ones are shown as "another operation".
constexpr std::size_t kNamesMax = 1 << 14;
// Tracks are numbered from here on, as no thread is: Linux numbers those below it (PID_MAX_LIMIT).
constexpr int kTracksFrom = 1 << 22;

struct Span {
  const char* name;
  TimePoint begin, end;
  std::uint64_t closure;
  int thread;
  bool overlaps;
};

const char* folder() {
  const char* path = std::getenv("CAIRN_TRACE");
  return path == nullptr || *path == '\0' ? nullptr : path;
}

double microseconds(TimePoint at) {
  return std::chrono::duration<double, std::micro>(at.time_since_epoch()).count();
}

// A static object, whose destructor writes the file when the process ends.
class Recorder {
 public:
  ~Recorder() {
    try {
      write();
    } catch (const std::exception& error) {  // the process ends: standard error is all that is left
      std::fprintf(stderr, "%s\n", error.what());
    }
  }

  // The kernel's number of the thread, under which the trace viewer and other tools list it. Its
  // name is taken at its first span, while the thread is certain to exist.
  void add(Span span) {
    span.thread = static_cast<int>(::syscall(SYS_gettid));
    const std::scoped_lock lock(mutex_);
    if (threads_.size() < kThreadsMax && !known(span.thread))
      threads_.push_back({span.thread, thread_name()});
    keep(span);
  }

  void add_on(const std::string& track, const std::string& name, TimePoint begin, TimePoint end) {
    const std::scoped_lock lock(mutex_);
    keep({kept_name(name), begin, end, 0, number_of(track), false});
  }

  void write() {
    const std::scoped_lock lock(mutex_);
    if (spans_.empty()) return;
    const int process = ::getpid();
    Json events = Json::array();
    events.push_back({{"ph", "M"},
                      {"pid", process},
                      {"name", "process_name"},
                      {"args", {{"name", program_invocation_short_name}}}});
    for (const auto& [thread, name] : threads_) events.push_back(row_name(process, thread, name));
    for (std::size_t i = 0; i < tracks_.size(); ++i)
      events.push_back(row_name(process, kTracksFrom + static_cast<int>(i), tracks_[i]));
    for (const Span& span : spans_) append(events, span, process);
    disk_.make_folder(folder());
    disk_.write_atomically(str(folder(), "/", program_invocation_short_name, "-", process, ".json"),
                           json_text(events));
  }

 private:
  void keep(const Span& span) {
    if (spans_.size() < kKept)
      spans_.push_back(span);
    else
      spans_[next_++ % kKept] = span;
  }
  const char* kept_name(const std::string& name) {
    if (names_.size() >= kNamesMax && !names_.contains(name)) return "another operation";
    return names_.insert(name).first->c_str();
  }
  int number_of(const std::string& track) {
    for (std::size_t i = 0; i < tracks_.size(); ++i)
      if (tracks_[i] == track) return kTracksFrom + static_cast<int>(i);
    tracks_.push_back(track);
    return kTracksFrom + static_cast<int>(tracks_.size()) - 1;
  }
  static Json row_name(int process, int row, const std::string& name) {
    return {{"ph", "M"},
            {"pid", process},
            {"tid", row},
            {"name", "thread_name"},
            {"args", {{"name", name}}}};
  }
  bool known(int thread) const {
    for (const auto& [number, name] : threads_)
      if (number == thread) return true;
    return false;
  }
  static std::string thread_name() {
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    return name;
  }
  // In Chrome's format "X" is a complete event, and those of one thread must nest. Spans that
  // overlap are a pair of "b" and "e" instead, which the viewer joins by category and id.
  static void append(Json& events, const Span& span, int process) {
    Json event{{"name", span.name},
               {"pid", process},
               {"tid", span.thread},
               {"ts", microseconds(span.begin)},
               {"args", {{"closure", span.closure}}}};
    if (!span.overlaps) {
      event["ph"] = "X";
      event["dur"] = microseconds(span.end) - microseconds(span.begin);
      events.push_back(std::move(event));
      return;
    }
    event["cat"] = "step";
    event["id"] = str(process, ".", span.thread, ".", span.closure);
    event["ph"] = "b";
    events.push_back(event);
    event["ph"] = "e";
    event["ts"] = microseconds(span.end);
    events.push_back(std::move(event));
  }

  Disk& disk_ = system_disk();  // made before this, so that it is there at the end
  std::mutex mutex_;
  std::vector<Span> spans_;
  std::size_t next_ = 0;
  std::vector<std::pair<int, std::string>> threads_;
  std::vector<std::string> tracks_;
  std::set<std::string> names_;  // of spans on tracks; those of threads are literals
};

Recorder& recorder() {
  static Recorder made;
  return made;
}

class ProcessSink final : public SpanSink {
 public:
  bool wanted() const override { return tracing(); }
  void add(const std::string& track, const std::string& name, TimePoint begin,
           TimePoint end) override {
    recorder().add_on(track, name, begin, end);
  }
};

}  // namespace

// Set before main(). start_trace() is for a program that gives the order on its command line: the
// environment passes it on to the processes that it starts.
std::atomic<bool> trace_detail::on = folder() != nullptr;

void start_trace(const std::string& folder) {
  ::setenv("CAIRN_TRACE", folder.c_str(), 1);
  trace_detail::on = true;
}

void record_span(const char* name, TimePoint begin, TimePoint end, std::uint64_t closure) {
  recorder().add({name, begin, end, closure, 0, false});
}
void record_overlapping_span(const char* name, TimePoint begin, TimePoint end,
                             std::uint64_t closure) {
  recorder().add({name, begin, end, closure, 0, true});
}

void TraceSpan::end() const {
  const TimePoint now = std::chrono::steady_clock::now();
  if (kind_ == Kind::kWork)
    record_span(name_, begin_, now, closure_);
  else
    record_overlapping_span(name_, begin_, now, closure_);
}

SpanSink& trace_sink() {
  static ProcessSink sink;  // without a state
  return sink;
}

void write_trace() { recorder().write(); }

}  // namespace cairn
