// A folder of a test's own, removed with its contents; and small scripts in it that play the
// servers.
#pragma once
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace cairn::tools {

class TempFolder {
 public:
  TempFolder() {
    const char* parent = std::getenv("TEST_TMPDIR");
    path_ =
        std::string(parent != nullptr ? parent : std::filesystem::temp_directory_path().c_str()) +
        "/cairn-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr)
      throw std::runtime_error("no temporary folder at " + path_);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

  std::string script(const std::string& name, const std::string& body) const {
    std::string file = path_ + "/" + name;
    std::ofstream(file) << "#!/bin/sh\n" << body << "\n";
    ::chmod(file.c_str(), 0755);
    return file;
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

// A server that does nothing until a signal ends it. `exec` leaves no shell behind that would
// outlive a signal.
inline constexpr const char* kServe = "exec sleep 600";

}  // namespace cairn::tools
