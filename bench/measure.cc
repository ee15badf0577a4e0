#include "bench/measure.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/machine.h"

namespace cairn::bench {
namespace {

const double kTicks = static_cast<double>(::sysconf(_SC_CLK_TCK));

// Seconds of user, system, irq, softirq and steal of all cores; nice and idle disturb no figure.
double machine_cpu() {
  std::ifstream stat("/proc/stat");
  std::string word;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  stat >> word >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
  return (user + system + irq + softirq + steal) / kTicks;
}

double process_cpu(pid_t pid) {
  std::ifstream file(str("/proc/", pid, "/stat"));
  std::string line((std::istreambuf_iterator<char>(file)), {});
  auto name_end = line.rfind(')');  // the name may hold blanks
  if (name_end == std::string::npos)
    throw NotFoundError(
        str("process ", pid, " of the benchmark is gone; its log is in the run's folder"));
  std::istringstream fields(line.substr(name_end + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / kTicks;
}

CpuReading read_cpu(const NamedProcesses& processes) {
  CpuReading reading{machine_cpu(), {}};
  for (const auto& [name, pid] : processes) reading.ours.push_back(process_cpu(pid));
  return reading;
}

// With its numbers: in virtual machines all of a maker's have one name.
std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  std::string name = "an unnamed CPU", family, model;
  for (std::string line; std::getline(info, line) && !line.empty();) {  // the first core's
    const std::string value = line.substr(std::min(line.size(), line.find(": ") + 2));
    if (line.starts_with("model name"))
      name = value;
    else if (line.starts_with("cpu family"))
      family = value;
    else if (line.starts_with("model\t"))
      model = value;
  }
  return family.empty() ? name : str(name, " (family ", family, ", model ", model, ")");
}

std::string grouped(double value) {
  if (value < 1000)
    return str(static_cast<double>(static_cast<std::int64_t>(value * 10 + 0.5)) / 10);
  std::string digits = std::to_string(static_cast<std::int64_t>(value + 0.5));
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

double mean_other(const Series& series) {
  double sum = 0;
  for (const Window& window : series.windows) sum += window.other_cores;
  return sum / static_cast<double>(std::max<std::size_t>(1, series.windows.size()));
}

std::size_t undisturbed(const Series& series) {
  return static_cast<std::size_t>(std::count_if(series.windows.begin(), series.windows.end(),
                                                [](const Window& w) { return w.undisturbed(); }));
}

std::vector<double> mean_ours(const Series& series) {
  std::vector<double> mean(series.processes.size());
  for (const Window& window : series.windows)
    for (std::size_t i = 0; i < mean.size(); ++i)
      mean[i] += window.our_cores[i] / static_cast<double>(series.windows.size());
  return mean;
}

}  // namespace

std::vector<double> Series::counted() const {
  const bool all = undisturbed(*this) < 3;
  std::vector<double> values;
  for (const Window& window : windows)
    if (all || window.undisturbed()) values.push_back(window.value);
  std::sort(values.begin(), values.end());
  return values;
}

double Series::median() const {
  auto values = counted();
  return percentile(values, 0.5);
}

Series measure(Series series, int windows, const std::function<double()>& work) {
  for (int i = 0; i < windows; ++i) {
    CpuReading before = read_cpu(series.processes);
    auto begin = std::chrono::steady_clock::now();
    Window window;
    window.value = work();
    window.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    CpuReading after = read_cpu(series.processes);
    double ours = 0;
    for (std::size_t p = 0; p < after.ours.size(); ++p) {
      ours += after.ours[p] - before.ours[p];
      window.our_cores.push_back((after.ours[p] - before.ours[p]) / window.seconds);
    }
    window.other_cores = std::max(0.0, (after.machine - before.machine - ours) / window.seconds);
    series.windows.push_back(std::move(window));
  }
  series.memory.clear();
  for (const auto& [name, pid] : series.processes)
    series.memory.push_back(static_cast<double>(private_memory_bytes(pid)) / (1 << 20));
  return series;
}

std::pair<Series, Series> measure_in_turns(Series one, const std::function<double()>& work_one,
                                           Series other, const std::function<double()>& work_other,
                                           int windows) {
  for (int i = 0; i < windows; ++i) {
    one = measure(std::move(one), 1, work_one);
    other = measure(std::move(other), 1, work_other);
  }
  return {std::move(one), std::move(other)};
}

double percentile(std::vector<double>& samples, double at) {
  if (samples.empty()) return 0;
  auto place = static_cast<std::size_t>(at * static_cast<double>(samples.size() - 1) + 0.5);
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(place),
                   samples.end());
  return samples[place];
}

std::string machine() {
  return str(cpu_model(), ", ", std::thread::hardware_concurrency(), " cores");
}

void Report::add(const Series& series) {
  auto values = series.counted();
  std::string cores;
  auto ours = mean_ours(series);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    char text[64];
    std::snprintf(text, sizeof text, "%s%s %.2f", i > 0 ? ", " : "",
                  series.processes[i].first.c_str(), ours[i]);
    cores += text;
  }
  std::printf("%-44s %10s %-10s (%s - %s)  %zu of %zu windows undisturbed, others %.2f cores; %s\n",
              str(series.bench, ": ", series.configuration).c_str(),
              grouped(series.median()).c_str(), series.unit.c_str(),
              grouped(values.front()).c_str(), grouped(values.back()).c_str(), undisturbed(series),
              series.windows.size(), mean_other(series), cores.c_str());
  std::fflush(stdout);
  Json line{{"bench", series.bench},
            {"configuration", series.configuration},
            {"unit", series.unit},
            {"median", series.median()},
            {"min", values.front()},
            {"max", values.back()},
            {"undisturbed", undisturbed(series)},
            {"machine", machine()}};
  for (const Window& window : series.windows)
    line["windows"].push_back({{"value", window.value},
                               {"seconds", window.seconds},
                               {"other_cores", window.other_cores}});
  for (std::size_t i = 0; i < ours.size(); ++i) line["cores"][series.processes[i].first] = ours[i];
  for (std::size_t i = 0; i < series.memory.size(); ++i)
    line["memory_mb"][series.processes[i].first] = series.memory[i];
  append(line);
}

void Report::say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void Report::figure(const std::string& what, double value, const std::string& unit) {
  std::printf("%-60s %10.3f %s\n", what.c_str(), value, unit == "ratio" ? "" : unit.c_str());
  std::fflush(stdout);
  append({{"bench", what.substr(0, what.find(':'))},
          {"configuration", what.substr(what.find(':') + 2)},
          {"unit", unit},
          {"median", value},
          {"machine", machine()}});
}

void Report::append(Json line) {
  if (json_file_.empty()) return;
  char now[32];
  const std::time_t time = std::time(nullptr);
  std::strftime(now, sizeof now, "%FT%TZ", std::gmtime(&time));
  line["commit"] = commit_;
  line["date"] = now;
  std::ofstream file(json_file_, std::ios::app);
  file << json_text(line) << '\n';
  if (!file.flush()) throw UnavailableError(str("could not write to ", json_file_));
}

}  // namespace cairn::bench
