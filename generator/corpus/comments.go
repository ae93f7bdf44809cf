package corpus

// codeTexts are the rules that all programs share: what their comments and
// messages say, in English and Chinese, and what stands in their literals.
const codeTexts = `
=comment
$Says$tail.
The $thing $holds the $thing$tail.
Without this, the $thing would $do the $thing $when.
We $do the $thing here, because $reason.
Callers must not $do the $thing $when.
Note that the $thing may be $state; see $f.
If $reason, the $thing is $state and the $thing stays as it was.
It is safe to $do one $thing from several $noun$.s at a time.
About $num $unit, measured with $nn $noun$.s of $num $unit each.
Only the $adj $thing is $state: $reason.
The $adj $noun comes first, so that $reason.
$Says when $reason. The $thing is then $state.
For $v = $num this is $num, for $num it is $num.
Both $noun and $noun count, but not the $thing.
A $noun of $num means that the $thing is $state.
Never $do the $thing twice: $reason.
Most $noun$.s are $adj, therefore $nn are enough for a $thing.
$name asked for this in $month: $reason.
There is no $adj $thing $when, and none is needed.
Keep in step with $f, which must $do the $thing too.
Older $noun$.s wrote $hex instead of $num, and a few of them are still $state.
Not $adj: the $thing would have to $do every $noun.
The order matters, since the $thing $holds a $adj $noun.
Slow, but it happens once per $thing.
$Says; zero means no $noun at all.
=Says
Gives the $thing that $holds the $adj $noun
Reports whether the $thing has been $state
Tries to $do the $thing and then the $noun
Walks over all $noun$.s in the order in which they were $state
Waits until the $thing is $state or the $noun ends
Makes the $thing ready to $do
Adds one $noun to the $thing
Tells how many $noun$.s are still $state
Drops whatever the $thing $holds
Rounds to whole $unit
Turns a $noun into its $adj form
Picks the $adj $thing among $nn
Splits the $thing at the first $noun
Remembers the $thing for the next $noun
Checks the $noun against the $thing, byte by byte
=about
the $thing
how the $thing is $state
the $adj $noun, in $unit
for a $noun that $holds a $noun
what the $thing $holds
$num $unit at most
the $noun's $noun
=tail

 $when
, because $reason
 unless the $noun is $state
 and never the $adj one
 (at most $num $unit)
, $when
; otherwise it is $state
, as $f does
=thing
$noun
$adj $noun
$noun
$noun of the $noun
caller's $noun
$noun $noun
next $noun
whole $noun
$a
=when
when the $thing is $state
while another $noun is $state
after the $adj $noun
before the first $noun
on every $noun
during a $verb
at start
once per $noun
between two $noun$.s
in tests
under load
until the $noun ends
for as long as the $thing lives
=reason
the $thing may be $state
a $noun can arrive late
nobody else $holds the $thing
the $noun is counted in $unit
older $noun$.s have no $noun
it would $do the $thing again
the $adj $noun is not known yet
reading the $noun costs $num $unit
two $noun$.s may share one $noun
the $thing was $state by hand
tests depend on the $noun
the disk is slower than the $noun
$a has no fixed size
=holds
holds
owns
refers to
decides about
follows
outlives
counts
replaces
depends on
hides
describes
waits for
is smaller than
=do
keep
change
block
copy
need
touch
lose
forget
$verb
$verb
delay
see
trust
renew
outlive
=state
empty
closed
known
gone
stale
full
taken
complete
sorted
locked
sent
ready
missing
damaged
in use
written
ignored
too old
out of range
rejected
=unit
ms
seconds
bytes
KB
rows
tokens
percent
days
pages
steps
minutes
MB
=month
January
March
spring
October
the last review
June
2023
December
version $n.$nn
=message
$noun $state
cannot $verb $noun
$a must not be $state
no $thing to $verb
$thing is $state
expected a $noun, found a $noun
$verb of the $noun took longer than $num $unit
more than $num $noun$.s
unknown $noun
the $adj $noun has no $noun
$noun $name is not a $noun
retry after $nn $unit
unexpected $noun at $num
$nn of $num $noun$.s $state
$noun and $noun do not match
$thing needs a $adj $noun
giving up after $n $noun$.s
the $noun ended before its $noun
=commentZh
$zsays$ztail。
$zthing必须先于$zthing$zdo，$zreason。
$zreason，所以这里不能$zdo$zthing。
如果$zthing$zstate，则$zdo$zthing。
注意：$zthing可能$zstate，参见 $f。
大约需要 $num $zunit，实测 $nn 次。
调用者不应在$zwhen$zdo$zthing。
$zthing与$zthing共用一把锁。
先$zdo$zthing，再$zdo$zthing，顺序不能颠倒。
值为 $num 表示$zthing$zstate。
旧版本写入的是 $hex，目前仍有少量$zthing$zstate。
$zwhen，$zthing最多为 $num $zunit。
这样做比较慢，但每个$zthing只执行一次。
与 $f 保持一致：$zreason。
没有$zthing时返回零值，而不是错误。
$zthing只在测试中被$zdo。
=aboutZh
$zthing
$zthing，单位为$zunit
$zstate的$zthing
最多 $num $zunit
供$zdo的$zthing
=zsays
返回$zthing对应的$zthing
判断$zthing是否$zstate
按顺序遍历所有$zthing
等待$zthing$zstate
将$zthing加入$zthing
计算仍未$zdo的$zthing数量
把$zthing转换为$zthing
尝试$zdo$zthing
记录$zthing，供下一次$zdo
按字节比较$zthing与$zthing
=ztail

，$zwhen除外
，因为$zreason
（最多 $num $zunit）
，否则视为$zstate
，见 $a
=zthing
请求
缓冲区
会话
缓存
配置项
连接
任务
游标
订单
索引
租户
密钥
日志
响应
时间戳
调用方的上下文
计数器
队列头部
分片
快照
账单
文件句柄
校验和
心跳
事务
路由表
权限
模板
字段
重试次数
主节点
最后一页
令牌
批次
默认值
$a
=zwhen
启动时
关闭之前
持有锁时
重试期间
首次访问时
数据迁移后
高负载下
测试环境中
超时之后
每次提交前
=zreason
$zthing可能已经$zstate
下游按$zunit计费
其他协程也会$zdo它
读取$zthing的代价很高
旧客户端不认识$zthing
磁盘写入慢于网络
$zthing没有固定长度
我们无法保证$zthing的顺序
两个$zthing可能指向同一个$zthing
=zdo
更新
释放
读取
覆盖
合并
丢弃
校验
锁定
排序
写回
复制
撤销
刷新
重建
压缩
修改
=zstate
为空
已关闭
过期
被占用
损坏
不存在
已排序
超出范围
尚未就绪
被拒绝
已写入
重复
=zunit
毫秒
字节
秒
行
个令牌
兆字节
页
分钟
=messageZh
$zthing$zstate
无法$zdo$zthing
$zthing不能$zstate
缺少$zthing
$zdo$zthing超时，已等待 $num $zunit
未知的$zthing
$zthing与$zthing不一致
超过 $num $zunit 的上限
第 $nn 行：$zthing$zstate
$zwhen不允许$zdo$zthing
已放弃：$zthing$zstate
=lit
$noun
$id
$noun/$id
$num
/$noun/$noun/$num
$s
$name
$noun-$hex
$name $noun
$n.$n.$n
$noun:$noun:$num
https://$noun.example.com/$noun/$hex
$nn$.s
$inst
10.$nn.$n.$nn
$noun.@$name.example
$hex
*.$noun
$id.json
`
