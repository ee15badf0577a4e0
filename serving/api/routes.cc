#include "serving/api/routes.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "data/feature/printable.h"
#include "serving/api/json_request.h"

namespace cairn::serving {
namespace {

constexpr const char* kReads = "GET, HEAD";
constexpr const char* kPosts = "POST";

using Names = std::vector<std::string>;

[[noreturn]] void refuse_path(std::string_view path, std::string_view part, const Names& there) {
  throw NotFoundError(str("there is no path \"", printable(path, 200), "\": \"", printable(part),
                          "\" is not known", names_near(part, there)));
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0)
      throw InvalidArgumentError(str("in the path, \"", printable(text.substr(i, 3)), "\" of \"",
                                     printable(text),
                                     "\" is not a percent sign with two hexadecimal digits"));
    out += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return out;
}

// The segments of a path between its slashes, as they were sent.
class Segments {
 public:
  explicit Segments(std::string_view path) : path_(path), rest_(path) {}
  std::string_view path() const { return path_; }
  bool empty() const { return rest_.empty(); }
  // The next one, which the path must have: one of those `there`, for the message.
  std::string_view next(const Names& there) {
    if (rest_.size() < 2 || rest_[0] != '/' || rest_[1] == '/')
      throw NotFoundError(str("there is no path \"", printable(path_, 200), "\": it ends too soon",
                              names_near("", there)));
    rest_.remove_prefix(1);
    const std::size_t end = std::min(rest_.find('/'), rest_.size());
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return found;
  }
  void expect_end(std::string_view after) const {
    if (!rest_.empty())
      throw NotFoundError(str("there is no path \"", printable(path_, 200),
                              "\": nothing follows \"", printable(after), "\""));
  }

 private:
  std::string_view path_, rest_;
};

std::int64_t parse_version(std::string_view text) {
  std::int64_t version = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, version);
  if (error != std::errc() || end != last || version < 0)
    throw InvalidArgumentError(
        str("in the path, \"", printable(text), "\" is no version's number"));
  return version;
}

// Takes ":VERB" off the end.
std::string_view take_verb(std::string_view& segment) {
  const std::size_t colon = segment.rfind(':');
  if (colon == segment.npos) return {};
  const std::string_view verb = segment.substr(colon + 1);
  segment = segment.substr(0, colon);
  return verb;
}

RouteKind kind_of_verb(std::string_view path, std::string_view verb) {
  static const std::vector<std::pair<std::string, RouteKind>> kVerbs = {
      {"predict", RouteKind::kTfPredict},
      {"classify", RouteKind::kTfClassify},
      {"regress", RouteKind::kTfRegress},
      {"recommend", RouteKind::kTfRecommend}};
  Names there;
  for (const auto& [name, kind] : kVerbs) {
    if (name == verb) return kind;
    there.push_back(name);
  }
  refuse_path(path, verb, there);
}

std::string model_name(std::string_view segment, std::string_view path) {
  std::string name = percent_decoded(segment);
  if (name.empty())
    throw NotFoundError(str("there is no path \"", printable(path, 200), "\": it names no model"));
  return name;
}

Route tf_route(Segments& rest) {
  if (const std::string_view models = rest.next({"models"}); models != "models")
    refuse_path(rest.path(), models, {"models"});
  Route made;
  std::string_view segment = rest.next({"the name of a model"});
  std::string_view verb = rest.empty() ? take_verb(segment) : std::string_view();
  bool has_verb = verb.data() != nullptr;
  made.model = model_name(segment, rest.path());
  made.kind = RouteKind::kTfStatus;
  while (!rest.empty() && !has_verb) {
    const std::string_view name = rest.next({});
    const bool is_chosen = made.version || !made.label.empty();
    if (name == "metadata") {
      made.kind = RouteKind::kTfMetadata;
      rest.expect_end(name);
    } else if (!is_chosen && (name == "versions" || name == "labels")) {
      segment = rest.next({name == "versions" ? "a version's number" : "a label"});
      if (rest.empty()) {
        verb = take_verb(segment);
        has_verb = verb.data() != nullptr;
      }
      if (name == "versions")
        made.version = parse_version(segment);
      else if (made.label = percent_decoded(segment); made.label.empty())
        throw NotFoundError(
            str("there is no path \"", printable(rest.path(), 200), "\": it names no label"));
    } else {
      refuse_path(rest.path(), name,
                  is_chosen ? Names{"metadata"} : Names{"metadata", "versions", "labels"});
    }
  }
  if (has_verb) made.kind = kind_of_verb(rest.path(), verb);
  return made;
}

Route infer_route(Segments& rest) {
  Route made;
  made.kind = RouteKind::kInferServer;
  if (rest.empty()) return made;
  const std::string_view first = rest.next({"models", "health"});
  if (first == "health") {
    const std::string_view what = rest.next({"live", "ready"});
    if (what != "live" && what != "ready") refuse_path(rest.path(), what, {"live", "ready"});
    made.kind = what == "live" ? RouteKind::kInferLive : RouteKind::kInferReady;
    rest.expect_end(what);
    return made;
  }
  if (first != "models") refuse_path(rest.path(), first, {"models", "health"});
  made.model = model_name(rest.next({"the name of a model"}), rest.path());
  made.kind = RouteKind::kInferModel;
  while (!rest.empty()) {
    const std::string_view name = rest.next({});
    if (name == "versions" && !made.version) {
      made.version = parse_version(rest.next({"a version's number"}));
    } else if (name == "ready" || name == "infer") {
      made.kind = name == "ready" ? RouteKind::kInferModelReady : RouteKind::kInfer;
      rest.expect_end(name);
    } else {
      refuse_path(rest.path(), name,
                  made.version ? Names{"ready", "infer"} : Names{"ready", "infer", "versions"});
    }
  }
  return made;
}

const char* methods_of(RouteKind kind) {
  switch (kind) {
    case RouteKind::kTfPredict:
    case RouteKind::kTfClassify:
    case RouteKind::kTfRegress:
    case RouteKind::kTfRecommend:
    case RouteKind::kInfer: return kPosts;
    default: return kReads;
  }
}

// "raw", or "raw=" and something other than "0" and "false".
bool asks_for_raw(std::string_view query) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view each = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (each == "raw") return true;
    if (each.starts_with("raw=")) return each != "raw=0" && each != "raw=false";
  }
  return false;
}

// "k=10".
std::optional<std::int64_t> asked_k(std::string_view query) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view each = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (!each.starts_with("k=")) continue;
    std::int64_t k = 0;
    const char *const first = each.data() + 2, *const last = each.data() + each.size();
    const auto [stop, error] = std::from_chars(first, last, k);
    if (error != std::errc() || stop != last || k < 1)
      throw InvalidArgumentError(
          str("in the query, \"", printable(each), "\" is no whole number from 1 on"));
    return k;
  }
  return {};
}

// Behind "http://host:port", as a proxy may send it.
std::string_view without_authority(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (target.starts_with(scheme)) {
      const std::size_t path = target.find('/', scheme.size());
      return path == target.npos ? std::string_view("/") : target.substr(path);
    }
  return target;
}

}  // namespace

Route parse_route(std::string_view method, std::string_view target) {
  target = without_authority(target);
  const std::size_t mark = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, mark);
  const std::string_view query = target.substr(std::min(mark + 1, target.size()));
  Segments rest(path);
  const Names tops = {"v1", "v2", "metrics"};
  const std::string_view top = rest.next(tops);
  Route made;
  if (top == "v1")
    made = tf_route(rest);
  else if (top == "v2")
    made = infer_route(rest);
  else if (top == "metrics")
    rest.expect_end(top);
  else
    refuse_path(path, top, tops);
  const std::string_view methods = methods_of(made.kind);
  const bool is_read = method == "GET" || method == "HEAD";
  if (is_read != (methods == kReads) || (!is_read && method != "POST"))
    throw WrongMethodError(
        str("\"", printable(path, 200), "\" takes ", methods, ", and not ", printable(method)),
        std::string(methods));
  const bool recommends = made.kind == RouteKind::kTfRecommend;
  made.raw = (made.kind == RouteKind::kTfPredict || recommends) && asks_for_raw(query);
  if (recommends) made.k = asked_k(query);
  return made;
}

}  // namespace cairn::serving
