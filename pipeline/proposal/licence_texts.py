"""The texts of the permissive licences, as far as they are always the same."""

# `…` stands for a few words that differ: names, a choice of words.
_BSD_START = """
    redistribution and use … in source and binary forms, with or without modification, are permitted
    provided that the following conditions are met:
    redistributions of source code must retain the above copyright notice, this list of conditions
    and the following disclaimer.
    redistributions in binary form must reproduce the above copyright notice, this list of
    conditions and the following disclaimer in the documentation and/or other materials provided
    with the distribution.
"""
_BSD_NAME = """
    {who} be used to endorse or promote products derived from this software without
    specific prior written permission.
"""
_BSD_END = """
    this software … is provided by … "as is" and any express or implied warranties, including, but
    not limited to, the implied warranties of merchantability and fitness for a particular purpose
    are disclaimed. in no event shall … be liable for any direct, indirect, incidental, special,
    exemplary, or consequential damages (including, but not limited to, procurement of substitute
    goods or services; loss of use, data, or profits; or business interruption) however caused and
    on any theory of liability, whether in contract, strict liability, or tort (including negligence
    or otherwise) arising in any way out of the use of this software …, even if advised of the
    possibility of such damage.
"""
_MIT_START = """
    permission is hereby granted, free of charge, to any person obtaining a copy of this software
    and associated documentation files (the "software"), to deal in the software without
    restriction, including without limitation the rights to use, copy, modify, merge, publish,
    distribute, sublicense, and/or sell copies of the software, and to permit persons to whom the
    software is furnished to do so
"""
_MIT_CONDITION = """
    subject to the following conditions:
    the above copyright notice and this permission notice … shall be included in all copies or
    substantial portions of the software.
"""
_NO_WARRANTY = """
    the software is provided "as is", without warranty of any kind, express or implied, including
    but not limited to the warranties of merchantability, fitness for a particular purpose …
    noninfringement. in no event shall … be liable for any claim, damages or other liability,
    whether in an action of contract, tort or otherwise, arising from, out of or in connection with
    the software or the use or other dealings in the software.
"""
_ISC_START = """
    permission to use, copy, modify, … distribute this software … for any purpose with or without
    fee is hereby granted
"""
_ISC_CONDITION = """
    provided that the above copyright notice and this permission notice appear in all copies.
"""
_ISC_END = """
    the software is provided "as is" and … disclaims all warranties with regard to this software
    including all implied warranties of merchantability and fitness. in no event shall … be liable
    for any special, direct, indirect, or consequential damages or any damages whatsoever resulting
    from loss of use, data or profits, whether in an action of contract, negligence or other
    tortious action, arising out of or in connection with the use or performance of this software.
"""

# SPDX identifier -> texts without copyright lines, of which one will do.
SHORT = {
    "MIT": (_MIT_START + _MIT_CONDITION + _NO_WARRANTY,),
    "MIT-0": (_MIT_START + _NO_WARRANTY,),
    "BSD-3-Clause": (
        _BSD_START + _BSD_NAME.format(who="neither … may") + _BSD_END,
        _BSD_START + _BSD_NAME.format(who="… may not") + _BSD_END,
    ),
    "BSD-2-Clause": (_BSD_START + _BSD_END,),
    "ISC": (_ISC_START + _ISC_CONDITION + _ISC_END,),
    "0BSD": (_ISC_START + _ISC_END,),
    "Zlib": (
        """
        this software is provided 'as-is', without any express or implied warranty. in no event will
        the authors be held liable for any damages arising from the use of this software.
        permission is granted to anyone to use this software for any purpose, including commercial
        applications, and to alter it and redistribute it freely, subject to the following
        restrictions:
        the origin of this software must not be misrepresented; you must not claim that you wrote
        the original software. if you use this software in a product, an acknowledgment in the
        product documentation would be appreciated but is not required.
        altered source versions must be plainly marked as such, and must not be misrepresented as
        being the original software.
        this notice may not be removed or altered from any source distribution.
    """,
    ),
    "Unlicense": (
        """
        this is free and unencumbered software released into the public domain.
        anyone is free to copy, modify, publish, use, compile, sell, or distribute this software,
        either in source code form or as a compiled binary, for any purpose, commercial or
        non-commercial, and by any means.
        in jurisdictions that recognize copyright laws, the author or authors of this software
        dedicate any and all copyright interest in the software to the public domain. we make this
        dedication for the benefit of the public at large and to the detriment of our heirs and
        successors. we intend this dedication to be an overt act of relinquishment in perpetuity of
        all present and future rights to this software under copyright law.
        the software is provided "as is", without warranty of any kind, express or implied,
        including but not limited to the warranties of merchantability, fitness for a particular
        purpose and noninfringement. in no event shall the authors be liable for any claim, damages
        or other liability, whether in an action of contract, tort or otherwise, arising from, out
        of or in connection with the software or the use or other dealings in the software.
    """,
    ),
}

# SPDX identifier -> first words, last words, sha256 of all words from the first to the last.
LONG = {
    "Apache-2.0": (
        "terms and conditions for use reproduction and distribution",
        "your accepting any such warranty or additional liability",
        "48cc79821a287c2f0c76a60c1600f70cc80aa43c2a4724e54c24ddcfccf422e8",
    ),
}

# What may stand beside a licence without being a part of it: how to apply it, where it is told.
AROUND = (
    """
    how to apply the apache license to your work. to apply the apache license to your work, attach
    the following boilerplate notice, with the fields enclosed by brackets … replaced with your own
    identifying information. (don't include the brackets!) the text should be enclosed in the
    appropriate comment syntax for the file format. we also recommend that a file or class name and
    description of purpose be included on the same "printed page" as the copyright notice for easier
    identification within third-party archives.
    """,
    """
    licensed under the apache license, version 2.0 (the "license"); you may not use this file except
    in compliance with the license. you may obtain a copy of the license at …
    unless required by applicable law or agreed to in writing, software distributed under the
    license is distributed on an "as is" basis, without warranties or conditions of any kind, either
    express or implied. see the license for the specific language governing permissions and
    limitations under the license.
    """,
    "for more information, please refer to …",
)
