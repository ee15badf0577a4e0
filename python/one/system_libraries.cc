// Functions of libcurl and libcrypto for libcairn.so. At their first call they load the machine's
// own libraries, and forward to them. Only buckets of S3 need the two libraries; with their own
// dependencies they would be a fifth of a wheel, and a system gets security fixes sooner than a
// wheel.
//
// The functions have the names that they forward to, so that storage/object_store is the same in
// every build. python/one/exports.map hides them, because the real libraries call each other by
// these names.
#include <curl/curl.h>
#include <dlfcn.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdarg>
#include <initializer_list>

#include "core/base/error.h"

namespace cairn {
namespace {

class Library {
 public:
  // The first of these names that the machine has.
  Library(const char* name, std::initializer_list<const char*> files) : name_(name) {
    for (const char* file : files)
      if (handle_ == nullptr) handle_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  }
  //   Errors  FailedPrecondition: the machine has no such library, or the library no such function.
  template <typename F>
  F* function(const char* function) const {
    if (handle_ == nullptr)
      throw FailedPreconditionError(
          str("a bucket of S3 needs ", name_,
              ", which is not installed here: Debian and Ubuntu have it by the package libcurl4"));
    void* const found = dlsym(handle_, function);
    if (found == nullptr)
      throw FailedPreconditionError(
          str("this machine's ", name_, " is too old for buckets of S3: it lacks ", function));
    return reinterpret_cast<F*>(found);
  }

 private:
  const char* name_;
  void* handle_ = nullptr;  // never closed: connections may outlive main()
};

const Library& curl() {
  static const Library library("libcurl", {"libcurl.so.4", "libcurl-gnutls.so.4"});
  return library;
}
const Library& crypto() {
  static const Library library("libcrypto", {"libcrypto.so.3", "libcrypto.so.1.1"});
  return library;
}

}  // namespace
}  // namespace cairn

#undef curl_easy_setopt
#undef curl_easy_getinfo
// The function of this name, looked up once.
#define CAIRN_OF(library, name) \
  static auto* const real = cairn::library().function<decltype(name)>(#name)

extern "C" {

CURLcode curl_global_init(long flags) {
  CAIRN_OF(curl, curl_global_init);
  return real(flags);
}
CURL* curl_easy_init() {
  CAIRN_OF(curl, curl_easy_init);
  return real();
}
// The value of an option is a long, a pointer or a curl_off_t: 64 bits each on every machine that
// Cairn is built for.
static_assert(sizeof(long) == sizeof(void*) && sizeof(curl_off_t) == sizeof(void*));
CURLcode curl_easy_setopt(CURL* handle, CURLoption option, ...) {
  CAIRN_OF(curl, curl_easy_setopt);
  va_list values;
  va_start(values, option);
  void* const value = va_arg(values, void*);
  va_end(values);
  return real(handle, option, value);
}
CURLcode curl_easy_getinfo(CURL* handle, CURLINFO info, ...) {
  CAIRN_OF(curl, curl_easy_getinfo);
  va_list values;
  va_start(values, info);
  void* const to = va_arg(values, void*);
  va_end(values);
  return real(handle, info, to);
}
CURLcode curl_easy_perform(CURL* handle) {
  CAIRN_OF(curl, curl_easy_perform);
  return real(handle);
}
void curl_easy_reset(CURL* handle) {
  CAIRN_OF(curl, curl_easy_reset);
  real(handle);
}
void curl_easy_cleanup(CURL* handle) {
  CAIRN_OF(curl, curl_easy_cleanup);
  real(handle);
}
const char* curl_easy_strerror(CURLcode code) {
  CAIRN_OF(curl, curl_easy_strerror);
  return real(code);
}
curl_slist* curl_slist_append(curl_slist* list, const char* text) {
  CAIRN_OF(curl, curl_slist_append);
  return real(list, text);
}
void curl_slist_free_all(curl_slist* list) {
  CAIRN_OF(curl, curl_slist_free_all);
  real(list);
}

const EVP_MD* EVP_sha256() {
  CAIRN_OF(crypto, EVP_sha256);
  return real();
}
int EVP_Digest(const void* bytes, size_t count, unsigned char* to, unsigned* size,
               const EVP_MD* type, ENGINE* engine) {
  CAIRN_OF(crypto, EVP_Digest);
  return real(bytes, count, to, size, type, engine);
}
unsigned char* HMAC(const EVP_MD* type, const void* key, int key_bytes, const unsigned char* bytes,
                    size_t count, unsigned char* to, unsigned* size) {
  CAIRN_OF(crypto, HMAC);
  return real(type, key, key_bytes, bytes, count, to, size);
}

}  // extern "C"
