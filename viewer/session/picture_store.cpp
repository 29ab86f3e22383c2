#include "viewer/session/picture_store.hpp"

#include <epoxy/gl.h>
#include <fmt/format.h>

#include <cmath>

#include "core/errors.hpp"

namespace carousel::viewer {
namespace {

class null_store final : public picture_store {
public:
    [[nodiscard]] bool has_gl() const noexcept override { return false; }
    std::string resize(u32, u32) override { return ""; }
    void upload(const std::byte*) override {}
    unsigned raw_texture() override { return 0; }
    void* shown(const picture_view&) override { return nullptr; }
    void* still(const std::byte*, u32, u32, u64) override { return nullptr; }
    [[nodiscard]] u64 version() const noexcept override { return 0; }
    bool read_pixel(u32, u32, u8 (&)[4]) override { return false; }
    std::vector<u8> read_back() override { return {}; }
};

constexpr const char* vertex_text = R"(#version 330 core
out vec2 at;
void main() {
    vec2 corner = vec2((gl_VertexID << 1) & 2, gl_VertexID & 2);
    at = corner;
    gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0);
}
)";
// The picture is in sRGB, and exposure is a factor of linear light, so the shader converts to linear values
// and back.
constexpr const char* fragment_text = R"(#version 330 core
in vec2 at;
out vec4 color;
uniform sampler2D picture;
uniform vec3 channels;
uniform float gain;
uniform bool alpha_only;
uniform bool single;
vec3 to_linear(vec3 c) { return mix(c / 12.92, pow((c + 0.055) / 1.055, vec3(2.4)), step(0.04045, c)); }
vec3 to_srgb(vec3 c) { return mix(c * 12.92, 1.055 * pow(c, vec3(1.0 / 2.4)) - 0.055, step(0.0031308, c)); }
void main() {
    vec4 p = texelFetch(picture, ivec2(at * vec2(textureSize(picture, 0))), 0);
    vec3 c = gain == 1.0 ? p.rgb : to_srgb(clamp(to_linear(p.rgb) * gain, 0.0, 1.0));
    c *= channels;
    if (single) c = vec3(c.r + c.g + c.b);
    color = vec4(alpha_only ? vec3(p.a) : c, 1.0);
}
)";

GLuint compile(GLenum kind, const char* text) {
    const GLuint s = glCreateShader(kind);
    glShaderSource(s, 1, &text, nullptr);
    glCompileShader(s);
    GLint ok = 0;
    glGetShaderiv(s, GL_COMPILE_STATUS, &ok);
    if (ok == 0) {
        char why[512] = {};
        glGetShaderInfoLog(s, sizeof why - 1, nullptr, why);
        throw device_error(fmt::format("the viewer's shader doesn't compile on this GL: {}", why));
    }
    return s;
}

GLuint make_texture(u32 width, u32 height, GLint shrink, GLint grow) {
    GLuint t = 0;
    glGenTextures(1, &t);
    glBindTexture(GL_TEXTURE_2D, t);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, static_cast<GLsizei>(width), static_cast<GLsizei>(height), 0,
                 GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, shrink);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, grow);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
    glBindTexture(GL_TEXTURE_2D, 0);
    return t;
}

class gl_store final : public picture_store {
public:
    gl_store() {
        const GLuint v = compile(GL_VERTEX_SHADER, vertex_text),
                     f = compile(GL_FRAGMENT_SHADER, fragment_text);
        program_ = glCreateProgram();
        glAttachShader(program_, v);
        glAttachShader(program_, f);
        glLinkProgram(program_);
        glDeleteShader(v);
        glDeleteShader(f);
        GLint ok = 0;
        glGetProgramiv(program_, GL_LINK_STATUS, &ok);
        if (ok == 0)
            throw device_error(
                "the viewer's shader doesn't link on this GL: update the driver, or use "
                "LIBGL_ALWAYS_SOFTWARE=1");
        glGenVertexArrays(1, &nothing_);
        glGenFramebuffers(1, &target_);
    }
    ~gl_store() override {
        drop();
        glDeleteTextures(1, &still_);
        glDeleteFramebuffers(1, &target_);
        glDeleteVertexArrays(1, &nothing_);
        glDeleteProgram(program_);
    }
    [[nodiscard]] bool has_gl() const noexcept override { return true; }
    std::string resize(u32 width, u32 height) override {
        if (width == width_ && height == height_) return "";
        drop();
        GLint limit = 0;
        glGetIntegerv(GL_MAX_TEXTURE_SIZE, &limit);
        if (width > static_cast<u32>(limit) || height > static_cast<u32>(limit))
            return fmt::format("the picture has {} x {} pixels, this GL supports at most {}", width, height,
                               limit);
        raw_ = make_texture(width, height, GL_NEAREST, GL_NEAREST);
        shown_ = make_texture(width, height, GL_LINEAR, GL_NEAREST);
        width_ = width;
        height_ = height;
        fresh_ = false;
        return "";
    }
    void upload(const std::byte* pixels) override {
        if (raw_ == 0) return;
        glBindTexture(GL_TEXTURE_2D, raw_);
        glPixelStorei(GL_UNPACK_ALIGNMENT, 4);
        glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, static_cast<GLsizei>(width_), static_cast<GLsizei>(height_),
                        GL_RGBA, GL_UNSIGNED_BYTE, pixels);
        glBindTexture(GL_TEXTURE_2D, 0);
        changed_ = fresh_ = true;
    }
    unsigned raw_texture() override {
        changed_ = fresh_ = raw_ != 0;
        return raw_;
    }
    // The shader pass is omitted for an unmodified frame, and mipmaps are omitted if the frame is drawn at
    // more than half its size, because on a software GL each of the two costs more than everything else.
    void* shown(const picture_view& view) override {
        if (!fresh_) return nullptr;
        const bool as_it_is = view.is_plain();
        const GLuint texture = as_it_is ? raw_ : shown_;
        if (changed_ || !(view == view_)) {
            ++version_;
            if (!as_it_is) render(view);
            glBindTexture(GL_TEXTURE_2D, texture);
            if (as_it_is) glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_SWIZZLE_A, GL_ONE);
            glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER,
                            view.small ? GL_LINEAR_MIPMAP_LINEAR : GL_LINEAR);
            if (view.small) glGenerateMipmap(GL_TEXTURE_2D);
            glBindTexture(GL_TEXTURE_2D, 0);
        }
        view_ = view;
        changed_ = false;
        return reinterpret_cast<void*>(static_cast<std::uintptr_t>(texture));
    }
    void* still(const std::byte* pixels, u32 width, u32 height, u64 picture) override {
        if (still_ == 0 || picture != still_picture_) {
            GLint limit = 0;
            glGetIntegerv(GL_MAX_TEXTURE_SIZE, &limit);
            if (width > static_cast<u32>(limit) || height > static_cast<u32>(limit)) return nullptr;
            glDeleteTextures(1, &still_);
            still_ = make_texture(width, height, GL_LINEAR_MIPMAP_LINEAR, GL_NEAREST);
            glBindTexture(GL_TEXTURE_2D, still_);
            glPixelStorei(GL_UNPACK_ALIGNMENT, 4);
            glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, static_cast<GLsizei>(width), static_cast<GLsizei>(height),
                            GL_RGBA, GL_UNSIGNED_BYTE, pixels);
            glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_SWIZZLE_A, GL_ONE);
            glGenerateMipmap(GL_TEXTURE_2D);
            glBindTexture(GL_TEXTURE_2D, 0);
            still_picture_ = picture;
            ++version_;
        }
        return reinterpret_cast<void*>(static_cast<std::uintptr_t>(still_));
    }
    [[nodiscard]] u64 version() const noexcept override { return version_; }
    bool read_pixel(u32 x, u32 y, u8 (&rgba)[4]) override {
        if (!fresh_ || x >= width_ || y >= height_) return false;
        GLint before = 0;
        glGetIntegerv(GL_READ_FRAMEBUFFER_BINDING, &before);
        glBindFramebuffer(GL_READ_FRAMEBUFFER, target_);
        glFramebufferTexture2D(GL_READ_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, raw_, 0);
        glReadPixels(static_cast<GLint>(x), static_cast<GLint>(y), 1, 1, GL_RGBA, GL_UNSIGNED_BYTE, rgba);
        glBindFramebuffer(GL_READ_FRAMEBUFFER, static_cast<GLuint>(before));
        return true;
    }
    std::vector<u8> read_back() override {
        if (!fresh_) return {};
        std::vector<u8> out(std::size_t{width_} * height_ * 4);
        glBindTexture(GL_TEXTURE_2D, raw_);
        glPixelStorei(GL_PACK_ALIGNMENT, 4);
        glGetTexImage(GL_TEXTURE_2D, 0, GL_RGBA, GL_UNSIGNED_BYTE, out.data());
        glBindTexture(GL_TEXTURE_2D, 0);
        return out;
    }

private:
    void drop() {
        glDeleteTextures(1, &raw_);
        glDeleteTextures(1, &shown_);
        raw_ = shown_ = 0;
        width_ = height_ = 0;
    }
    void render(const picture_view& view) {
        GLint before = 0, box[4] = {};
        glGetIntegerv(GL_DRAW_FRAMEBUFFER_BINDING, &before);
        glGetIntegerv(GL_VIEWPORT, box);
        glBindFramebuffer(GL_FRAMEBUFFER, target_);
        glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, shown_, 0);
        glViewport(0, 0, static_cast<GLsizei>(width_), static_cast<GLsizei>(height_));
        glDisable(GL_BLEND);
        glDisable(GL_SCISSOR_TEST);
        glDisable(GL_DEPTH_TEST);
        glUseProgram(program_);
        glActiveTexture(GL_TEXTURE0);
        glBindTexture(GL_TEXTURE_2D, raw_);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_SWIZZLE_A, GL_ALPHA);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
        const int on = (view.red ? 1 : 0) + (view.green ? 1 : 0) + (view.blue ? 1 : 0);
        glUniform1i(glGetUniformLocation(program_, "picture"), 0);
        glUniform3f(glGetUniformLocation(program_, "channels"), view.red ? 1.0F : 0.0F,
                    view.green ? 1.0F : 0.0F, view.blue ? 1.0F : 0.0F);
        glUniform1f(glGetUniformLocation(program_, "gain"),
                    view.exposure_stops == 0 ? 1.0F : std::exp2(view.exposure_stops));
        glUniform1i(glGetUniformLocation(program_, "alpha_only"), view.alpha ? 1 : 0);
        glUniform1i(glGetUniformLocation(program_, "single"), on == 1 ? 1 : 0);
        glBindVertexArray(nothing_);
        glDrawArrays(GL_TRIANGLES, 0, 3);
        glBindVertexArray(0);
        glUseProgram(0);
        glBindFramebuffer(GL_FRAMEBUFFER, static_cast<GLuint>(before));
        glViewport(box[0], box[1], box[2], box[3]);
    }

    GLuint program_ = 0, nothing_ = 0, target_ = 0, raw_ = 0, shown_ = 0;
    u32 width_ = 0, height_ = 0;
    bool changed_ = false, fresh_ = false;
    GLuint still_ = 0;
    u64 version_ = 0, still_picture_ = 0;
    picture_view view_;
};

}  // namespace

std::unique_ptr<picture_store> make_null_store() { return std::make_unique<null_store>(); }
std::unique_ptr<picture_store> make_gl_store() { return std::make_unique<gl_store>(); }

}  // namespace carousel::viewer
