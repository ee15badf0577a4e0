// The figures of whole-system benchmarks: windows of a figure, how disturbed they were, on which
// machine.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace cairn::bench {

using Stopwatch = std::chrono::steady_clock;

inline double seconds_since(Stopwatch::time_point begin) {
  return std::chrono::duration<double>(Stopwatch::now() - begin).count();
}

// CPU seconds since some fixed moment: of the machine (work at idle priority left out, time stolen
// by the host counted), and of each named process of ours.
struct CpuReading {
  double machine = 0;
  std::vector<double> ours;
};

using NamedProcesses = std::vector<std::pair<std::string, pid_t>>;  // "worker-0" and its process

// One window: the figure, and who else was busy meanwhile.
struct Window {
  double value = 0;
  double seconds = 0;
  double other_cores = 0;         // busy with what is not ours
  std::vector<double> our_cores;  // beside the processes
  bool undisturbed() const { return other_cores < 0.15; }
};

struct Series {
  std::string bench;          // "closures"
  std::string configuration;  // for people: "1 ps + 1 worker, auto, depth 2"
  std::string unit;           // "closures/s", "us"
  NamedProcesses processes;
  std::vector<Window> windows;
  // MB beside the processes, after the last window: what no file holds
  std::vector<double> memory;

  // The windows that count: the undisturbed ones where there are three, else all.
  std::vector<double> counted() const;
  double median() const;
};

// Runs `work` `windows` times; it returns the figure of the time that it took.
Series measure(Series series, int windows, const std::function<double()>& work);

// Two kinds of work in turns, so that a machine whose speed drifts is the same to both.
std::pair<Series, Series> measure_in_turns(Series one, const std::function<double()>& work_one,
                                           Series other, const std::function<double()>& work_other,
                                           int windows);

// At the share `at` of the sorted samples.
double percentile(std::vector<double>& samples, double at);

std::string machine();  // "AMD EPYC ..., 2 cores"

// Prints a table and, where a file is named, appends one JSON line a series.
class Report {
 public:
  // Lines carry `commit` and the time at which they were written.
  Report(std::string json_file, std::string commit)
      : json_file_(std::move(json_file)), commit_(std::move(commit)) {}
  void add(const Series& series);
  void say(const std::string& line);
  // "growth: 8 workers, of linear"
  void figure(const std::string& what, double value, const std::string& unit = "ratio");
  // `of`, in units of `to`.
  void ratio(const std::string& what, const Series& of, double to) {
    figure(what, of.median() / to);
  }
  void ratio(const std::string& what, const Series& of, const Series& to) {
    ratio(what, of, to.median());
  }

 private:
  void append(nlohmann::ordered_json line);
  std::string json_file_, commit_;
};

}  // namespace cairn::bench
