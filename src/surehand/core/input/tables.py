"""Key names and characters as tables: facts of the X keyboard and of the W3C key and code values.

Every table is text, parsed once when it is first needed. `X_NAMES_TEXT` holds keysym names and numbers (hex),
`LEGACY_TEXT` keysyms that stand for a character outside Latin-1 without being its code point (both hex),
`ALIASES_TEXT` other spellings of a key (lower case) and its X name, `WEBDRIVER_TEXT` the private code points that
WebDriver uses for keys.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import Final

X_NAMES_TEXT: Final = """
BackSpace=ff08 Tab=ff09 Linefeed=ff0a Clear=ff0b Return=ff0d Pause=ff13 Scroll_Lock=ff14 Sys_Req=ff15
Escape=ff1b Delete=ffff Multi_key=ff20 Kanji=ff21 Muhenkan=ff22 Henkan=ff23 Hiragana_Katakana=ff27
Zenkaku_Hankaku=ff2a Home=ff50 Left=ff51 Up=ff52 Right=ff53 Down=ff54 Prior=ff55 Page_Up=ff55 Next=ff56
Page_Down=ff56 End=ff57 Begin=ff58 Select=ff60 Print=ff61 Execute=ff62 Insert=ff63 Undo=ff65 Redo=ff66 Menu=ff67
Find=ff68 Cancel=ff69 Help=ff6a Break=ff6b Mode_switch=ff7e Num_Lock=ff7f KP_Space=ff80 KP_Tab=ff89
KP_Enter=ff8d KP_F1=ff91 KP_F2=ff92 KP_F3=ff93 KP_F4=ff94 KP_Home=ff95 KP_Left=ff96 KP_Up=ff97 KP_Right=ff98
KP_Down=ff99 KP_Prior=ff9a KP_Page_Up=ff9a KP_Next=ff9b KP_Page_Down=ff9b KP_End=ff9c KP_Begin=ff9d
KP_Insert=ff9e KP_Delete=ff9f KP_Equal=ffbd KP_Multiply=ffaa KP_Add=ffab KP_Separator=ffac KP_Subtract=ffad
KP_Decimal=ffae KP_Divide=ffaf KP_0=ffb0 KP_1=ffb1 KP_2=ffb2 KP_3=ffb3 KP_4=ffb4 KP_5=ffb5 KP_6=ffb6 KP_7=ffb7
KP_8=ffb8 KP_9=ffb9 F1=ffbe F2=ffbf F3=ffc0 F4=ffc1 F5=ffc2 F6=ffc3 F7=ffc4 F8=ffc5 F9=ffc6 F10=ffc7 F11=ffc8
F12=ffc9 F13=ffca F14=ffcb F15=ffcc F16=ffcd F17=ffce F18=ffcf F19=ffd0 F20=ffd1 F21=ffd2 F22=ffd3 F23=ffd4
F24=ffd5 F25=ffd6 F26=ffd7 F27=ffd8 F28=ffd9 F29=ffda F30=ffdb F31=ffdc F32=ffdd F33=ffde F34=ffdf F35=ffe0
Shift_L=ffe1 Shift_R=ffe2 Control_L=ffe3 Control_R=ffe4 Caps_Lock=ffe5 Shift_Lock=ffe6 Meta_L=ffe7 Meta_R=ffe8
Alt_L=ffe9 Alt_R=ffea Super_L=ffeb Super_R=ffec Hyper_L=ffed Hyper_R=ffee ISO_Level3_Shift=fe03
ISO_Level5_Shift=fe11 ISO_Next_Group=fe08 ISO_Prev_Group=fe0a ISO_Left_Tab=fe20 space=20 exclam=21 quotedbl=22
numbersign=23 dollar=24 percent=25 ampersand=26 apostrophe=27 quoteright=27 parenleft=28 parenright=29
asterisk=2a plus=2b comma=2c minus=2d period=2e slash=2f colon=3a semicolon=3b less=3c equal=3d greater=3e
question=3f at=40 bracketleft=5b backslash=5c bracketright=5d asciicircum=5e underscore=5f grave=60 quoteleft=60
braceleft=7b bar=7c braceright=7d asciitilde=7e nobreakspace=a0 exclamdown=a1 cent=a2 sterling=a3 currency=a4
yen=a5 brokenbar=a6 section=a7 diaeresis=a8 copyright=a9 ordfeminine=aa guillemotleft=ab notsign=ac hyphen=ad
registered=ae macron=af degree=b0 plusminus=b1 twosuperior=b2 threesuperior=b3 acute=b4 mu=b5 paragraph=b6
periodcentered=b7 cedilla=b8 onesuperior=b9 masculine=ba guillemotright=bb onequarter=bc onehalf=bd
threequarters=be questiondown=bf Agrave=c0 Aacute=c1 Acircumflex=c2 Atilde=c3 Adiaeresis=c4 Aring=c5 AE=c6
Ccedilla=c7 Egrave=c8 Eacute=c9 Ecircumflex=ca Ediaeresis=cb Igrave=cc Iacute=cd Icircumflex=ce Idiaeresis=cf
ETH=d0 Eth=d0 Ntilde=d1 Ograve=d2 Oacute=d3 Ocircumflex=d4 Otilde=d5 Odiaeresis=d6 multiply=d7 Oslash=d8
Ooblique=d8 Ugrave=d9 Uacute=da Ucircumflex=db Udiaeresis=dc Yacute=dd THORN=de Thorn=de ssharp=df agrave=e0
aacute=e1 acircumflex=e2 atilde=e3 adiaeresis=e4 aring=e5 ae=e6 ccedilla=e7 egrave=e8 eacute=e9 ecircumflex=ea
ediaeresis=eb igrave=ec iacute=ed icircumflex=ee idiaeresis=ef eth=f0 ntilde=f1 ograve=f2 oacute=f3
ocircumflex=f4 otilde=f5 odiaeresis=f6 division=f7 oslash=f8 ooblique=f8 ugrave=f9 uacute=fa ucircumflex=fb
udiaeresis=fc yacute=fd thorn=fe ydiaeresis=ff Hangul=ff31 Hangul_Hanja=ff34 EuroSign=20ac
XF86AudioLowerVolume=1008ff11 XF86AudioMute=1008ff12 XF86AudioRaiseVolume=1008ff13 XF86AudioPlay=1008ff14
XF86AudioPause=1008ff31 XF86AudioStop=1008ff15 XF86AudioPrev=1008ff16 XF86AudioNext=1008ff17
XF86AudioRecord=1008ff1c XF86AudioMicMute=1008ffb2 XF86AudioForward=1008ff97 XF86AudioRewind=1008ff3e
XF86MonBrightnessUp=1008ff02 XF86MonBrightnessDown=1008ff03 XF86KbdBrightnessUp=1008ff05
XF86KbdBrightnessDown=1008ff06 XF86HomePage=1008ff18 XF86Mail=1008ff19 XF86Search=1008ff1b
XF86Calculator=1008ff1d XF86Back=1008ff26 XF86Forward=1008ff27 XF86Stop=1008ff28 XF86Refresh=1008ff29
XF86Reload=1008ff73 XF86Favorites=1008ff30 XF86Explorer=1008ff5d XF86WWW=1008ff2e XF86Eject=1008ff2c
XF86ScreenSaver=1008ff2d XF86PowerOff=1008ff2a XF86Sleep=1008ff2f XF86WakeUp=1008ff2b XF86Copy=1008ff57
XF86Cut=1008ff58 XF86Paste=1008ff6d XF86Open=1008ff6b XF86Close=1008ff56 XF86Save=1008ff77 XF86New=1008ff68
XF86Send=1008ff7b XF86Reply=1008ff72 XF86ZoomIn=1008ff8b XF86ZoomOut=1008ff8c XF86Tools=1008ff81
XF86MyComputer=1008ff33 XF86Display=1008ff59
"""

LEGACY_TEXT: Final = """
1a1=104 1a2=2d8 1a3=141 1a5=13d 1a6=15a 1a9=160 1aa=15e 1ab=164 1ac=179 1ae=17d 1af=17b 1b1=105 1b2=2db 1b3=142
1b5=13e 1b6=15b 1b7=2c7 1b9=161 1ba=15f 1bb=165 1bc=17a 1bd=2dd 1be=17e 1bf=17c 1c0=154 1c3=102 1c5=139 1c6=106
1c8=10c 1ca=118 1cc=11a 1cf=10e 1d0=110 1d1=143 1d2=147 1d5=150 1d8=158 1d9=16e 1db=170 1de=162 1e0=155 1e3=103
1e5=13a 1e6=107 1e8=10d 1ea=119 1ec=11b 1ef=10f 1f0=111 1f1=144 1f2=148 1f5=151 1f8=159 1f9=16f 1fb=171 1fe=163
1ff=2d9 2a1=126 2a6=124 2a9=130 2ab=11e 2ac=134 2b1=127 2b6=125 2b9=131 2bb=11f 2bc=135 2c5=10a 2c6=108 2d5=120
2d8=11c 2dd=16c 2de=15c 2e5=10b 2e6=109 2f5=121 2f8=11d 2fd=16d 2fe=15d 3a2=138 3a3=156 3a5=128 3a6=13b 3aa=112
3ab=122 3ac=166 3b3=157 3b5=129 3b6=13c 3ba=113 3bb=123 3bc=167 3bd=14a 3bf=14b 3c0=100 3c7=12e 3cc=116 3cf=12a
3d1=145 3d2=14c 3d3=136 3d9=172 3dd=168 3de=16a 3e0=101 3e7=12f 3ec=117 3ef=12b 3f1=146 3f2=14d 3f3=137 3f9=173
3fd=169 3fe=16b 47e=203e 4a1=3002 4a2=300c 4a3=300d 4a4=3001 4a5=30fb 4a6=30f2 4a7=30a1 4a8=30a3 4a9=30a5
4aa=30a7 4ab=30a9 4ac=30e3 4ad=30e5 4ae=30e7 4af=30c3 4b0=30fc 4b1=30a2 4b2=30a4 4b3=30a6 4b4=30a8 4b5=30aa
4b6=30ab 4b7=30ad 4b8=30af 4b9=30b1 4ba=30b3 4bb=30b5 4bc=30b7 4bd=30b9 4be=30bb 4bf=30bd 4c0=30bf 4c1=30c1
4c2=30c4 4c3=30c6 4c4=30c8 4c5=30ca 4c6=30cb 4c7=30cc 4c8=30cd 4c9=30ce 4ca=30cf 4cb=30d2 4cc=30d5 4cd=30d8
4ce=30db 4cf=30de 4d0=30df 4d1=30e0 4d2=30e1 4d3=30e2 4d4=30e4 4d5=30e6 4d6=30e8 4d7=30e9 4d8=30ea 4d9=30eb
4da=30ec 4db=30ed 4dc=30ef 4dd=30f3 4de=309b 4df=309c 5ac=60c 5bb=61b 5bf=61f 5c1=621 5c2=622 5c3=623 5c4=624
5c5=625 5c6=626 5c7=627 5c8=628 5c9=629 5ca=62a 5cb=62b 5cc=62c 5cd=62d 5ce=62e 5cf=62f 5d0=630 5d1=631 5d2=632
5d3=633 5d4=634 5d5=635 5d6=636 5d7=637 5d8=638 5d9=639 5da=63a 5e0=640 5e1=641 5e2=642 5e3=643 5e4=644 5e5=645
5e6=646 5e7=647 5e8=648 5e9=649 5ea=64a 5eb=64b 5ec=64c 5ed=64d 5ee=64e 5ef=64f 5f0=650 5f1=651 5f2=652 6a1=452
6a2=453 6a3=451 6a4=454 6a5=455 6a6=456 6a7=457 6a8=458 6a9=459 6aa=45a 6ab=45b 6ac=45c 6ad=491 6ae=45e 6af=45f
6b0=2116 6b1=402 6b2=403 6b3=401 6b4=404 6b5=405 6b6=406 6b7=407 6b8=408 6b9=409 6ba=40a 6bb=40b 6bc=40c 6bd=490
6be=40e 6bf=40f 6c0=44e 6c1=430 6c2=431 6c3=446 6c4=434 6c5=435 6c6=444 6c7=433 6c8=445 6c9=438 6ca=439 6cb=43a
6cc=43b 6cd=43c 6ce=43d 6cf=43e 6d0=43f 6d1=44f 6d2=440 6d3=441 6d4=442 6d5=443 6d6=436 6d7=432 6d8=44c 6d9=44b
6da=437 6db=448 6dc=44d 6dd=449 6de=447 6df=44a 6e0=42e 6e1=410 6e2=411 6e3=426 6e4=414 6e5=415 6e6=424 6e7=413
6e8=425 6e9=418 6ea=419 6eb=41a 6ec=41b 6ed=41c 6ee=41d 6ef=41e 6f0=41f 6f1=42f 6f2=420 6f3=421 6f4=422 6f5=423
6f6=416 6f7=412 6f8=42c 6f9=42b 6fa=417 6fb=428 6fc=42d 6fd=429 6fe=427 6ff=42a 7a1=386 7a2=388 7a3=389 7a4=38a
7a5=3aa 7a7=38c 7a8=38e 7a9=3ab 7ab=38f 7ae=385 7af=2015 7b1=3ac 7b2=3ad 7b3=3ae 7b4=3af 7b5=3ca 7b6=390 7b7=3cc
7b8=3cd 7b9=3cb 7ba=3b0 7bb=3ce 7c1=391 7c2=392 7c3=393 7c4=394 7c5=395 7c6=396 7c7=397 7c8=398 7c9=399 7ca=39a
7cb=39b 7cc=39c 7cd=39d 7ce=39e 7cf=39f 7d0=3a0 7d1=3a1 7d2=3a3 7d4=3a4 7d5=3a5 7d6=3a6 7d7=3a7 7d8=3a8 7d9=3a9
7e1=3b1 7e2=3b2 7e3=3b3 7e4=3b4 7e5=3b5 7e6=3b6 7e7=3b7 7e8=3b8 7e9=3b9 7ea=3ba 7eb=3bb 7ec=3bc 7ed=3bd 7ee=3be
7ef=3bf 7f0=3c0 7f1=3c1 7f2=3c3 7f3=3c2 7f4=3c4 7f5=3c5 7f6=3c6 7f7=3c7 7f8=3c8 7f9=3c9 8a1=23b7 8a4=2320
8a5=2321 8a7=23a1 8a8=23a3 8a9=23a4 8aa=23a6 8ab=239b 8ac=239d 8ad=239e 8ae=23a0 8af=23a8 8b0=23ac 8bc=2264
8bd=2260 8be=2265 8bf=222b 8c0=2234 8c1=221d 8c2=221e 8c5=2207 8c8=223c 8c9=2243 8cd=21d4 8ce=21d2 8cf=2261
8d6=221a 8da=2282 8db=2283 8dc=2229 8dd=222a 8de=2227 8df=2228 8ef=2202 8f6=192 8fb=2190 8fc=2191 8fd=2192
8fe=2193 9e0=25c6 9e1=2592 9e2=2409 9e3=240c 9e4=240d 9e5=240a 9e8=2424 9e9=240b 9ea=2518 9eb=2510 9ec=250c
9ed=2514 9ee=253c 9ef=23ba 9f0=23bb 9f1=2500 9f2=23bc 9f3=23bd 9f4=251c 9f5=2524 9f6=2534 9f7=252c 9f8=2502
aa1=2003 aa2=2002 aa3=2004 aa4=2005 aa5=2007 aa6=2008 aa7=2009 aa8=200a aa9=2014 aaa=2013 aae=2026 aaf=2025
ab0=2153 ab1=2154 ab2=2155 ab3=2156 ab4=2157 ab5=2158 ab6=2159 ab7=215a ab8=2105 abb=2012 ac3=215b ac4=215c
ac5=215d ac6=215e ac9=2122 ad0=2018 ad1=2019 ad2=201c ad3=201d ad4=211e ad5=2030 ad6=2032 ad7=2033 ad9=271d
aec=2663 aed=2666 aee=2665 af0=2720 af1=2020 af2=2021 af3=2713 af4=2717 af5=266f af6=266d af7=2642 af8=2640
af9=260e afa=2315 afb=2117 afc=2038 afd=201a afe=201e bc2=22a4 bc4=230a bca=2218 bcc=2395 bce=22a5 bcf=25cb
bd3=2308 bdc=22a3 bfc=22a2 cdf=2017 ce0=5d0 ce1=5d1 ce2=5d2 ce3=5d3 ce4=5d4 ce5=5d5 ce6=5d6 ce7=5d7 ce8=5d8
ce9=5d9 cea=5da ceb=5db cec=5dc ced=5dd cee=5de cef=5df cf0=5e0 cf1=5e1 cf2=5e2 cf3=5e3 cf4=5e4 cf5=5e5 cf6=5e6
cf7=5e7 cf8=5e8 cf9=5e9 cfa=5ea da1=e01 da2=e02 da3=e03 da4=e04 da5=e05 da6=e06 da7=e07 da8=e08 da9=e09 daa=e0a
dab=e0b dac=e0c dad=e0d dae=e0e daf=e0f db0=e10 db1=e11 db2=e12 db3=e13 db4=e14 db5=e15 db6=e16 db7=e17 db8=e18
db9=e19 dba=e1a dbb=e1b dbc=e1c dbd=e1d dbe=e1e dbf=e1f dc0=e20 dc1=e21 dc2=e22 dc3=e23 dc4=e24 dc5=e25 dc6=e26
dc7=e27 dc8=e28 dc9=e29 dca=e2a dcb=e2b dcc=e2c dcd=e2d dce=e2e dcf=e2f dd0=e30 dd1=e31 dd2=e32 dd3=e33 dd4=e34
dd5=e35 dd6=e36 dd7=e37 dd8=e38 dd9=e39 dda=e3a ddf=e3f de0=e40 de1=e41 de2=e42 de3=e43 de4=e44 de5=e45 de6=e46
de7=e47 de8=e48 de9=e49 dea=e4a deb=e4b dec=e4c ded=e4d df0=e50 df1=e51 df2=e52 df3=e53 df4=e54 df5=e55 df6=e56
df7=e57 df8=e58 df9=e59 ea1=3131 ea2=3132 ea3=3133 ea4=3134 ea5=3135 ea6=3136 ea7=3137 ea8=3138 ea9=3139
eaa=313a eab=313b eac=313c ead=313d eae=313e eaf=313f eb0=3140 eb1=3141 eb2=3142 eb3=3143 eb4=3144 eb5=3145
eb6=3146 eb7=3147 eb8=3148 eb9=3149 eba=314a ebb=314b ebc=314c ebd=314d ebe=314e ebf=314f ec0=3150 ec1=3151
ec2=3152 ec3=3153 ec4=3154 ec5=3155 ec6=3156 ec7=3157 ec8=3158 ec9=3159 eca=315a ecb=315b ecc=315c ecd=315d
ece=315e ecf=315f ed0=3160 ed1=3161 ed2=3162 ed3=3163 ed4=11a8 ed5=11a9 ed6=11aa ed7=11ab ed8=11ac ed9=11ad
eda=11ae edb=11af edc=11b0 edd=11b1 ede=11b2 edf=11b3 ee0=11b4 ee1=11b5 ee2=11b6 ee3=11b7 ee4=11b8 ee5=11b9
ee6=11ba ee7=11bb ee8=11bc ee9=11bd eea=11be eeb=11bf eec=11c0 eed=11c1 eee=11c2 eef=316d ef0=3171 ef1=3178
ef2=317f ef3=3181 ef4=3184 ef5=3186 ef6=318d ef7=318e ef8=11eb ef9=11f0 efa=11f9 13bc=152 13bd=153 13be=178
20ac=20ac
"""

ALIASES_TEXT: Final = """
ctrl=Control_L control=Control_L controlleft=Control_L controlormeta=Control_L commandorcontrol=Control_L
lctrl=Control_L controlright=Control_R rctrl=Control_R shift=Shift_L shiftleft=Shift_L lshift=Shift_L
shiftright=Shift_R rshift=Shift_R alt=Alt_L altleft=Alt_L option=Alt_L lalt=Alt_L altright=Alt_R ralt=Alt_R
meta=Super_L super=Super_L win=Super_L windows=Super_L cmd=Super_L command=Super_L os=Super_L metaleft=Super_L
osleft=Super_L lwin=Super_L metaright=Super_R osright=Super_R rwin=Super_R hyper=Hyper_L altgr=ISO_Level3_Shift
altgraph=ISO_Level3_Shift enter=Return return=Return ret=Return cr=Return numpadenter=KP_Enter esc=Escape
escape=Escape backspace=BackSpace bksp=BackSpace back_space=BackSpace del=Delete delete=Delete ins=Insert
insert=Insert tab=Tab backtab=ISO_Left_Tab space=space spacebar=space linefeed=Linefeed pageup=Page_Up
pgup=Page_Up prior=Page_Up pagedown=Page_Down pgdn=Page_Down pgdown=Page_Down next=Page_Down home=Home end=End
up=Up arrowup=Up uparrow=Up down=Down arrowdown=Down downarrow=Down left=Left arrowleft=Left leftarrow=Left
right=Right arrowright=Right rightarrow=Right contextmenu=Menu apps=Menu menu=Menu printscreen=Print prtsc=Print
print=Print scrolllock=Scroll_Lock numlock=Num_Lock capslock=Caps_Lock pause=Pause break=Break help=Help
select=Select execute=Execute undo=Undo redo=Redo again=Redo find=Find cancel=Cancel clear=Clear f1=F1 f2=F2
f3=F3 f4=F4 f5=F5 f6=F6 f7=F7 f8=F8 f9=F9 f10=F10 f11=F11 f12=F12 f13=F13 f14=F14 f15=F15 f16=F16 f17=F17
f18=F18 f19=F19 f20=F20 f21=F21 f22=F22 f23=F23 f24=F24 keya=a keyb=b keyc=c keyd=d keye=e keyf=f keyg=g keyh=h
keyi=i keyj=j keyk=k keyl=l keym=m keyn=n keyo=o keyp=p keyq=q keyr=r keys=s keyt=t keyu=u keyv=v keyw=w keyx=x
keyy=y keyz=z digit0=0 numpad0=KP_0 digit1=1 numpad1=KP_1 digit2=2 numpad2=KP_2 digit3=3 numpad3=KP_3 digit4=4
numpad4=KP_4 digit5=5 numpad5=KP_5 digit6=6 numpad6=KP_6 digit7=7 numpad7=KP_7 digit8=8 numpad8=KP_8 digit9=9
numpad9=KP_9 numpadadd=KP_Add numpadsubtract=KP_Subtract numpadmultiply=KP_Multiply numpaddivide=KP_Divide
numpaddecimal=KP_Decimal numpadequal=KP_Equal numpadcomma=KP_Separator minus=minus equal=equal
bracketleft=bracketleft bracketright=bracketright backslash=backslash semicolon=semicolon quote=apostrophe
backquote=grave comma=comma period=period slash=slash intlbackslash=less dot=period dash=minus equals=equal
singlequote=apostrophe doublequote=quotedbl tilde=asciitilde backtick=grave audiovolumemute=XF86AudioMute
volumemute=XF86AudioMute audiovolumedown=XF86AudioLowerVolume volumedown=XF86AudioLowerVolume
audiovolumeup=XF86AudioRaiseVolume volumeup=XF86AudioRaiseVolume mediaplaypause=XF86AudioPlay
mediaplay=XF86AudioPlay mediapause=XF86AudioPause mediastop=XF86AudioStop mediatracknext=XF86AudioNext
mediatrackprevious=XF86AudioPrev mediarecord=XF86AudioRecord microphonemutetoggle=XF86AudioMicMute
brightnessup=XF86MonBrightnessUp brightnessdown=XF86MonBrightnessDown browserback=XF86Back
browserforward=XF86Forward browserhome=XF86HomePage browserrefresh=XF86Refresh browsersearch=XF86Search
browserstop=XF86Stop browserfavorites=XF86Favorites launchmail=XF86Mail copy=XF86Copy cut=XF86Cut
paste=XF86Paste open=XF86Open close=XF86Close save=XF86Save new=XF86New eject=XF86Eject zoomin=XF86ZoomIn
zoomout=XF86ZoomOut sleep=XF86Sleep wakeup=XF86WakeUp power=XF86PowerOff
"""

WEBDRIVER_TEXT: Final = """
e001=Cancel e002=Help e003=BackSpace e004=Tab e005=Clear e006=Return e007=Return e008=Shift_L e009=Control_L
e00a=Alt_L e00b=Pause e00c=Escape e00d=space e00e=Page_Up e00f=Page_Down e010=End e011=Home e012=Left e013=Up
e014=Right e015=Down e016=Insert e017=Delete e018=semicolon e019=equal e01a=KP_0 e01b=KP_1 e01c=KP_2 e01d=KP_3
e01e=KP_4 e01f=KP_5 e020=KP_6 e021=KP_7 e022=KP_8 e023=KP_9 e024=KP_Multiply e025=KP_Add e026=KP_Separator
e027=KP_Subtract e028=KP_Decimal e029=KP_Divide e031=F1 e032=F2 e033=F3 e034=F4 e035=F5 e036=F6 e037=F7 e038=F8
e039=F9 e03a=F10 e03b=F11 e03c=F12 e03d=Super_L e050=Shift_R e051=Control_R e052=Alt_R e053=Super_R
e054=KP_Page_Up e055=KP_Page_Down e056=KP_End e057=KP_Home e058=KP_Left e059=KP_Up e05a=KP_Right e05b=KP_Down
e05c=KP_Insert e05d=KP_Delete
"""


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(left, right) for left, _, right in (entry.partition("=") for entry in text.split())]


@cache
def x_names() -> MappingProxyType[str, int]:
    """Return keysym names and their numbers."""
    return MappingProxyType({name: int(number, 16) for name, number in _pairs(X_NAMES_TEXT)})


@cache
def legacy_characters() -> MappingProxyType[int, str]:
    """Return the characters of keysyms that are neither Latin-1 nor Unicode keysyms."""
    return MappingProxyType({int(keysym, 16): chr(int(code, 16)) for keysym, code in _pairs(LEGACY_TEXT)})


@cache
def legacy_keysyms() -> MappingProxyType[str, int]:
    """Return the same the other way round; of several keysyms for a character the first."""
    found: dict[str, int] = {}
    for keysym, character in legacy_characters().items():
        found.setdefault(character, keysym)
    return MappingProxyType(found)


@cache
def aliases() -> MappingProxyType[str, str]:
    """Return lower-case spellings and the X name (or the character) of the key."""
    return MappingProxyType(dict(_pairs(ALIASES_TEXT)))


@cache
def webdriver_keys() -> MappingProxyType[str, str]:
    """Return WebDriver's private characters and the X name of the key."""
    return MappingProxyType({chr(int(code, 16)): name for code, name in _pairs(WEBDRIVER_TEXT)})
